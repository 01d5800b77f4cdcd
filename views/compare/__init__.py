"""The Compare view: another layout beside this one."""
