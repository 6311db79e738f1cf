"""slurm-bridge: lets Slurm schedule Kubernetes workloads."""

__version__ = "0.2.0"
