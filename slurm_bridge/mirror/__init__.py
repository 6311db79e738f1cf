"""What Slurm says of our placeholder jobs, kept in memory and asked for cheaply.

Belongs here: the table of placeholders, the polling that keeps it true, the full scan that rebuilds it, and the breaker
that doubts mass disappearance. Does not belong here: what follows from a change (that is scheduler/), or any order to
Slurm.
"""
