"""Preemption: pods of lower priority make room for one of higher priority.

Belongs here: which nodes are worth trying, which pods would have to leave, which node is taken, and the hook by which a
site switches preemption on. Does not belong here: the evictions, which the scheduler carries out (it alone knows the
job of each pod), and the predicates that say on which nodes a pod can run at all.
"""
