"""The HTTP door: probes, metrics, pods that are handed in, and whatever else may be asked of a process.

Belongs here: taking requests apart, within bounds that no client can exceed, finding who answers, and letting pods in
with their callers' own rights. Does not belong here: what other rooms know (they hand in routes), and how the API
server is asked.
"""
