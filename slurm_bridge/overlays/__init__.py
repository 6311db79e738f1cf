"""Decorators of ports: the same verbs, with one concern added that no client knows.

Belongs here: counting calls, and refusing writes to a replica that does not lead. Does not belong here: anything that
changes what a call means.
"""
