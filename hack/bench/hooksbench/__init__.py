"""How many workloads per second the hooks plan, and how that grows with the cluster: `make bench-hooks`.

Belongs here: a made-up cluster that changes while it is looked at, workloads, gangs, contestants, turns; many
applications in the queues of the core, its passes and admissions; the tables and the plots. Nothing here is part of the
product, and nothing needs Slurm, Kubernetes or a network.
"""
