"""A script that moves numbers from one layout to another, where the job runs."""
