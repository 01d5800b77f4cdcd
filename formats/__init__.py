"""What others write and read: launch files, logs, hosts, measurements, documents, and the check."""
