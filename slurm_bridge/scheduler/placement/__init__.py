"""From nodes that Slurm has allocated to a node for each pod, and the checks before pods are bound there."""
