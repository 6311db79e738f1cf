"""Kubernetes' own rules about nodes and pods, each once: selectors, affinity, taints, volumes.

Here belong pure functions over frozen records, for any hook to use. Not here: what follows from an answer.
"""
