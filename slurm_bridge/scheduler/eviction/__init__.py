"""Eviction: pods of this bridge leave their nodes for another workload.

Belongs here: the EvictionController, which carries out what hooks say of evictions (`hooks.evictions`); what it tells
a hook that looks for victims; the nodes that are held for a workload meanwhile; and what is written on pods about it.
Does not belong here: which pods have to leave, and for which workload. A hook says so; no code here knows which one.
"""
