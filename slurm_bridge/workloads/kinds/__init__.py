"""One file for each kind of workload: whether a pod belongs to it, and what the whole of it looks like.

Belongs here: `handles`, `claim` and `gather` of each kind. Does not belong here: another kind; kinds do not know each
other, and which of them comes first is said in `workloads.base`.
"""
