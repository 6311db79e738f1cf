"""The cluster as both sides see it, kept in memory, and Kubernetes' own rules about nodes and pods.

Here belong the cache of nodes and of what is in use on them, the snapshot of one moment, its nodes as arrays
(`columns`), the rules of selectors, taints, volumes, neighbours and disruption budgets (`rules`), and questions that
need nothing else: which nodes have room, and on how few of them a gang can start. Not here: hooks, phases, anything
that decides for a workload.
"""
