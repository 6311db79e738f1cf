"""Loops beside the scheduler that keep one thing true each.

Belongs here: who leads among the replicas. Does not belong here: which pod goes where (scheduler), and what users are
told (status).
"""
