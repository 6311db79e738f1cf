"""Keeps the nodes of Kubernetes and of Slurm in step; off unless it is configured, and only the leader does it.

Belongs here: what one side has to be told of a node of the other. Does not belong here: which node a pod gets
(scheduler, hooks), and how the servers are asked (slurm, kube).

    views      both sides as they are now, and which node is which
    desired_nodes     what a Kubernetes node asks for in Slurm
    node_devices  the devices that DRA drivers publish of a node
    marks      what the bridge writes on a node of Slurm, and how it knows its own nodes and drains
    facts      all that is known of one node of Slurm
    decide     the action for one node: pure
    departures a brake on many that leave at once
    effects    actions of many nodes, in few calls
    taints     the taint of managed nodes
    node_events  events on Kubernetes nodes
    availability  what Slurm says of a node, on the Kubernetes node: pure
    state_writer  writes it
    controller the pass over all nodes: read, decide, act, tell
"""
