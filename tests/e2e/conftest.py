"""Both real servers at once: an administrator, users who apply manifests, and the real daemon."""

from tests.e2e.support_fixtures import foreign, kube, open_world, slurm, work

__all__ = ["foreign", "kube", "open_world", "slurm", "work"]
