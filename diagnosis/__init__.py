"""What evidence says: who hangs, who is slow, and how machines lie to groups. Pure.

Readers (`formats`) fill the values of this room; `groups` say who belongs together.
"""
