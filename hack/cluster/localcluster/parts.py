"""All parts in the order in which they start; they stop in the opposite order."""

from localcluster import access, controllers, frameworks, gomodules, kubeconfig, kubernetes, nodes, real_nodes, slurm
from localcluster.config import Config
from localcluster.part import Part

#: Binaries come first, because everything after them is made of them; nodes after KWOK, which makes them ready;
#: webhooks after the controller that answers them, or nothing could be created.
KUBERNETES: tuple[Part, ...] = (
    gomodules.Binaries(),
    kubeconfig.Credentials(),
    kubernetes.ETCD,
    kubernetes.APISERVER,
    kubernetes.CONTROLLER_MANAGER,
    kubernetes.KWOK,
    access.Access(),
    nodes.Nodes(),
    controllers.COSCHEDULING,
    *controllers.JOBSET,
    *controllers.LWS,
)

#: Neither half needs the other to start.
HALVES: tuple[tuple[Part, ...], ...] = (slurm.PARTS, KUBERNETES)

#: What every cluster has.
PARTS: tuple[Part, ...] = tuple(part for half in HALVES for part in half)


def stages(config: Config) -> tuple[tuple[tuple[Part, ...], ...], ...]:
    """Of a cluster like this one: a stage starts after the one before it, its chains start side by side."""
    return (HALVES, *frameworks.stages(config), *real_nodes.stages(config))


def of(config: Config) -> tuple[Part, ...]:
    """All parts of a cluster like this one, in starting order."""
    return tuple(part for stage in stages(config) for chain in stage for part in chain)
