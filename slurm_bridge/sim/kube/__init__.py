"""A pocket Kubernetes: the API as the bridge uses it, a kubelet and a few simple controllers.

Belongs here: what a real apiserver answers, word for word where a client may read it, and its surprises (a bind to a
node that does not exist succeeds, a watch from the future is silent, a PUT can create a Lease). The contract suite
compares it with the real one. Does not belong here: faults (they are in `sim.faults`), scheduling, capacity,
networking.
"""
