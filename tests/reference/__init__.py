"""Other frameworks, formulated after their own source: oracles that the maths is held against."""
