"""slurm-bridge: lets Slurm schedule Kubernetes workloads."""

__version__ = "0.1.0"
