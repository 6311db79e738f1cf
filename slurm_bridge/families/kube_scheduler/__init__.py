"""kube-scheduler's way of choosing nodes: predicates that rule nodes out, priorities that rate the others, extenders.

Here belong the predicates and priorities by their names, how their answers are put together, the two hooks that ask
them ("kube-scheduler" and "preemption"), and their options. Not here: the rules themselves as far as they are
Kubernetes' own (`cluster.rules`), and anything about Slurm or about other families of hooks.
"""
