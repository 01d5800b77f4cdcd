"""The words of scripts, files and recipes, each with its place in the text; nothing is executed."""
