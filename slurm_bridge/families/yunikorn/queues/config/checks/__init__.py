"""The rules that a whole configuration obeys, one module for each subject, each a function that yields problems.

Here belongs what records can be wrong about together. Not here: what a single field may look like, which parsing knows.
"""
