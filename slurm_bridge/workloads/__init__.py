"""Which pods belong together, which object they belong to, and which annotations count for them.

Belongs here: the owners above a pod, what is known of the objects that group pods, and one row for each kind of
workload. Does not belong here: what an annotation means for Slurm (translate), when a workload is scheduled
(scheduler), lists and watches (informers), and any write.
"""
