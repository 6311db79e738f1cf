"""The local cluster: real Slurm and real Kubernetes servers on loopback, started and stopped as parts.

Standard library only, so that it runs before anything is installed. A module here knows how to start one kind of
part; `main` knows their order. What belongs to the daemon (its code, its manifests) is not here.
"""
