"""Which pods belong together, whose they are, and whose annotations speak for them.

Belongs here: the chain of owners above a pod, and one file for each kind of workload. Does not belong here: what an
annotation means (translate), when a workload is looked at (scheduler), and any write.
"""
