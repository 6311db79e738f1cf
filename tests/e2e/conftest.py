"""Both real servers at once: an administrator, users who apply manifests, and the real daemon.

Every module has a daemon, a scheduler name and a namespace of its own, so that modules may run side by side: `make e2e`
does so, with those that apply manifests as they are, and what disrupts the cluster for others, alone afterwards.
"""

from tests.e2e.support_fixtures import foreign, kube, open_world, slurm, work

__all__ = ["foreign", "kube", "open_world", "slurm", "work"]
