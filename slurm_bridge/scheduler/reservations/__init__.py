"""Reservations in Slurm: nodes that are kept for a workload which others pass.

    choice   which nodes          node_record  what its job says of them
    acquire  reserve, assign      release      leave, remove

Does not belong here: for which workload nodes are kept. A hook says so (`hooks.reserving`).
"""
