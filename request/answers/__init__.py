"""What a request answers, in numbers and in words, for pages, endpoints and commands. No HTML.

Of each question there is a function of a `request.context.Context` that gives a document, which the
endpoint writes as JSON and the command line as a table, and what else several of the three show.
"""
