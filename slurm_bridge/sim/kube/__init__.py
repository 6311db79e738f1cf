"""A pocket Kubernetes: the API as the bridge meets it, a kubelet and a few controllers simple enough to read.

Belongs here: what a real apiserver answers, word for word where a client may read it, and its surprises (a bind to a
node that does not exist succeeds, a watch from the future is silent, a PUT can create a Lease). The contract suite
holds it to the real one. Does not belong here: faults (they are `sim.faults`), scheduling, capacity, networking.
"""
