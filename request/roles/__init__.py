"""Several layouts on one cluster: the roles of a state.

text      their compact text, written and read        pages    the plan of a state
edits     one change of it at a time                  opened   the state of a plan that was read
"""
