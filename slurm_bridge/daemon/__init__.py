"""The running daemon: packages joined by ports, with threads, leader election, HTTP APIs and configuration.

Belongs here: what is built once, the order of start and stop, and the connections between packages. Does not belong
here: any decision about a workload, and the adapters to the two servers, which `app` passes in.
"""
