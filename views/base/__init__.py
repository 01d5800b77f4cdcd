"""What all views share: HTML of a request's words.

view, html, form     the row of a view; elements and inputs
problems             refusals, and buttons that mend the input
names, hosts, heat   groups, machines and colours
"""
