"""YuniKorn's scheduler core: queues with guarantees and limits, the order of service, and what may be taken back.

    requests of resource managers ─► cache (what is committed) ─► scheduler (a pass per partition) ─► proposals ─► cache

Here belong the arithmetic of resources, the tree of queues with its usage, orders, priorities, access control lists,
the configuration of queues, placement, allocation and preemption. Resource managers come in by requests and are
answered by a callback. Not here: pods, Slurm's jobs, hooks, and whatever a resource manager knows that the core does
not ask it for. This package imports nothing of the rest but the errors and the runtime.
"""
