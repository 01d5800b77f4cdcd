"""Golden answers: what page, endpoints and command line answered when a commit last said so.

    python -m tests.golden.make                  write answers.json anew: these answers are meant
    python -m tests.golden.make --show NAME ...  what of an answer differs from the stored one's

`ask` is the only part that knows the code's insides; `cases` says what is asked.
"""
