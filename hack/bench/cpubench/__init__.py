"""What each family of hooks costs the daemon: its processor time per pod, between pocket servers.

The daemon is a process of its own; both pocket servers are in the process that measures, so that no cluster is needed
and only the daemon's time is counted.
"""
