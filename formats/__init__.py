"""What other programs write and read: launch files, documents, the script that checks a cluster."""
