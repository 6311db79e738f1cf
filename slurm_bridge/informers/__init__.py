"""List and watch, kept in memory: what the cluster looks like, without asking it each time.

Belongs here: stores of frozen objects, and the loops that keep them equal to the API server. Does not belong here:
HTTP (that is behind ports.Cluster), the meaning of an object, and any write.
"""
