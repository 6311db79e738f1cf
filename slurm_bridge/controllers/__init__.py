"""Loops beside the scheduler that keep one thing true each.

Belongs here: the election of a leader among the replicas. Does not belong here: which pod is bound where (scheduler),
and what users see (status).
"""
