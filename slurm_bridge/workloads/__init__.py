"""Which pods belong together, whose they are, and whose annotations speak for them.

Belongs here: the chain of owners above a pod, what is known of those who group pods, and one file for each kind of
workload. Does not belong here: what an annotation means for Slurm (translate), when a workload is looked at
(scheduler), who listens to the server (informers), and any write.
"""
