"""What all views share.

state -> resolve -> Layout (groups)     what the page says, and the layout that it means
model, trained                          what is trained on it: one model, batch, schedule
context                                 all of that, as a view gets it; what a view is
html, form, problems, fixes             elements, inputs, refusals and what mends them
link, endpoint                          addresses; functions that programs call
"""
