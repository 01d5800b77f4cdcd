"""The Hosts view: machines by name, a better order of them, and what is slow on them."""
