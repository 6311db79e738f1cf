"""Devices by ResourceClaim: the hook that turns claims into GRES, and asks Slurm only for nodes that have the devices.

Here belong the table of device classes, CEL conditions on devices, and what is said to claims that Slurm cannot be
asked for. Not here: the writing of claims after Slurm has allocated, which is the scheduler's.
"""
