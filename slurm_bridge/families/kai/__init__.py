"""KAI's node sets: a workload is tried in one topology domain after the other, the fullest that can take it first.

Here belong topologies and their trees of domains, which domains can take a workload and in which order, the scores that
keep its tasks together, trying whole workloads on node sets, the division among queues, and the hook that does all of
this for the daemon: what annotations ask for, and where it is written in which domain a node is. Not here: layers of
hooks and attempts with their windows, which are the framework's; other families.
"""
