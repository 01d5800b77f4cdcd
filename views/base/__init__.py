"""What all views share.

state -> resolve -> Layout (groups)     what the page says, and the layout that it means
trained, training, model                what is trained on it: one model, batch, schedule
context                                 all of that, as a view gets it
link, form, messages, problems, tables  addresses, inputs, refusals, HTML
endpoint, training_endpoint             functions that programs call
"""
