"""One file for each kind of workload: whether a pod belongs to it, and what the whole of it looks like.

Belongs here: the two questions `claim` and `gather`. Does not belong here: another kind; kinds do not know each other.
"""
