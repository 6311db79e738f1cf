"""What stands between a translated workload and its submission: an ordered chain of hooks, and how to write one.

Here belong the phases and their records, the chain that runs them, the emitter (the only writer of Slurm's node
fields), and the registry that turns configuration into a chain. Not here: what is known of the cluster (`cluster`), the
hooks that ship with the bridge (`families`), talking to Slurm or Kubernetes, deciding what happens to a job.
"""
