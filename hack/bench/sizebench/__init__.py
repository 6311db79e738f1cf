"""How the daemon grows with the cluster: pods by the hundred thousand between pocket servers, a cold start, and quiet.

The daemon is a process of its own; both pocket servers are in the process that measures, and only the daemon counts.
"""
