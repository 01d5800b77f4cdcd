"""The Step time view: the seconds of a step, its parts, and the measured runs behind the
estimate."""
