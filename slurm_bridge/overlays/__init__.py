"""Ports seen through a glass: the same verbs, with one concern added that no client has to know.

Belongs here: counting calls, and refusing writes to a replica that does not lead. Does not belong here: anything that
changes what a call means.
"""
