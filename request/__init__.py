"""What is asked: by the page, a link, an endpoint and the command line. No HTML.

inputs, state, link       every field, their texts, and those texts as an address
resolve, model, trained   the layout that a state means, the model, and how it is trained
roles                     the other layouts on the same cluster
context                   all of that, as views and documents get it
endpoint                  parameters of functions that programs call
words, fixes, hosts       refusals in words, what mends them, the machines
named, served             other layouts by name; the server that is computed with
answers                   what pages, endpoints and commands share of what is worked out
"""
