"""The Step time view: how long a step takes, what it is made of, and the runs that say so."""
