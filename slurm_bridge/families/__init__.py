"""The hooks that ship with the bridge: a package, or a module, for each family. `hooks.registry` names them.

Here belong what a family asks of a node, how it orders, samples, scores or divides, and its options. Families do not
know each other: what several of them need of the cluster is in `cluster`, what the chain gives to every hook is in
`hooks`, and what only families share is in `shared`. Not here: anything that the scheduler or the chain imports.
"""
