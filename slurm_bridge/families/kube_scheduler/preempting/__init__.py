"""Preemption: pods of lower priority make room for one of higher priority.

Belongs here: which nodes are worth trying, which pods would have to go, which node is taken, and the hook by which a
site switches preemption on. Does not belong here: telling anybody to go, which the scheduler does (it alone knows
whose job a pod runs in), and the predicates that say on which nodes a pod can run at all.
"""
