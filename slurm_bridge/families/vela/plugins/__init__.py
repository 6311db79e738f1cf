"""The filter and score plugins that agents and decisions are configured with.

Here belong rules about nodes and one pod, each in whole numbers over columns. Not here: when they are asked, and what
their answers are combined to.
"""
