"""The calls to Slurm and to Kubernetes that carry out an action: one module for each kind of action.

An effect runs in a worker, for one workload at a time. It returns when the workload is to be looked at again. Nothing
here decides what to do next.
"""
