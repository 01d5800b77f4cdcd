"""Other layouts than the one on screen, by what a person or a program calls them.

text     a published name, a link, a document or a launch command
kept     the one that is kept to compare with
launch   the fields of the page that a launch file sets
"""
