"""What makes one node better than another for a pod: kube-scheduler's priorities, each over all nodes at once.

Here belong the priorities by their names, what they count, and the record that describes one. They look at a `Scene`
and return numbers by row of its columns. Not here: running and weighing them (`priority_chain`) and choosing a host
(`selection`).
"""
