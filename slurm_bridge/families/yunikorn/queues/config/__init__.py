"""The configuration of queues: read from a plain mapping, checked as a whole, then frozen.

    mapping ─ parsing ─► documents ─ checks ─► documents without a problem ─ building ─► tree
                    └──────────┴─► problems: code, field, what is there, what is allowed

Here belong the records of a configuration, everything that may be wrong with one, the properties that queues inherit,
and how a tree is built from it or follows a new one. Not here: YAML, files and the right to load one; what happens in a
queue once it stands in the tree.
"""
