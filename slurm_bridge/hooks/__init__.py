"""What stands between a translated workload and its submission: an ordered chain of hooks, and how to write one.

Here belong the phases and their records, the chain that runs them, the snapshot that they look at, the emitter (the
only writer of Slurm's node fields), the registry that turns configuration into a chain, and the hooks that ship with
the bridge. Not here: talking to Slurm or Kubernetes, deciding what happens to a job, queues of workloads.
"""
