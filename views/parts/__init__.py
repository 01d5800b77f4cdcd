"""What several views show: pictures of a job and of its groups, tables, sentences with buttons.

A view imports no other view: what two of them show stands here.
"""
