"""How many workloads per second the hooks plan, and how that grows with the cluster: `make bench-hooks`.

Belongs here: a made-up cluster that changes while it is looked at, workloads, contestants, turns, the table and the
plot. Nothing here is part of the product, and nothing needs Slurm, Kubernetes or a network.
"""
