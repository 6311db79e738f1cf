"""The daemon as a resource manager of the queue core: workloads are applications, and wait in queues before Slurm's.

Here belong what a workload is to the core (its user, tags, amounts), the resource manager with its callback, the phases
of the hook, and the words that users read. Not here: queues, limits, orders and allocation, which are in `queues`
and know no pod or job; nor nodes, which Slurm chooses.
"""
