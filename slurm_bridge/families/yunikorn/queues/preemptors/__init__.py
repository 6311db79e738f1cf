"""Preemption: what an asker may take back from which victims, and a plan of it.

    asker, tree, what runs ─► candidates ─► solutions by node ─► further victims ─► trimmed ─► Planned | Refused

Here belong the arithmetic of guarantees, the order of victims, attempts for an ask that waits, for one that needs a
certain node, and for a queue whose maximum was lowered. All of it is pure: removals are tried on an overlay of the
tree's usage, and nothing is marked, evicted or reserved here. Not here: when an attempt is made, what carries a plan
out, and what the plan's victims are to Kubernetes or Slurm.
"""
