"""The running daemon: rooms joined by ports, given threads, a leader, probes and a configuration that can change.

Belongs here: what has to be built once, in which order it starts and stops, and who is told what. Does not belong here:
any decision about a workload, and how either server is reached (that is handed in).
"""
