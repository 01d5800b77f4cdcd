"""Golden answers: what a person or a program read when a commit last said so, as text.

`answers` holds questions and answers, a file a view, `inputs` the files that questions name; `ask`
asks, `reading` makes lines of an answer, and ``python -m tests.golden.make`` writes them anew.
"""
