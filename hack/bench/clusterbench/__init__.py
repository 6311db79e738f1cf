"""What scheduling through Slurm costs on a large local cluster, beside what it costs without us.

Belongs here: the contestants, the load, the clocks and counters, and the table they end in. Does not belong here: what
one call of an adapter costs (`adapters.py` beside this package), or anything that decides how the daemon works.
"""
