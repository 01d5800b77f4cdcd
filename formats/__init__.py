"""Files of other programs: launch files, logs, hosts, measurements, documents, and the check
script."""
