"""All parts in the order in which they start; they stop in the opposite order."""

from localcluster import access, controllers, gomodules, kubeconfig, kubernetes, nodes, slurm
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

PARTS: tuple[Part, ...] = tuple(part for half in HALVES for part in half)
