"""From a workload and its placeholder to the next step, and the step itself.

Belongs here: the queue, the truth table, the choice of places, and the effects on both sides. Does not belong here:
which pods belong together (workloads/), what a workload asks for (translate/), where it may run (hooks/), or how Slurm
is asked what became of our jobs (mirror/).
"""
