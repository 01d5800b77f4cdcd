"""The script that checks a job's process groups on its real cluster, with torch.distributed."""
