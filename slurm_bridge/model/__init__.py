"""Frozen records that every package may hold: what a pod, a node, a Slurm job *is*.

Belongs here: data, and pure questions about it. Does not belong here: input or output, a clock, dice, logging, or
any knowledge of how a server spells these things beyond the field names of Kubernetes' own JSON.
"""
