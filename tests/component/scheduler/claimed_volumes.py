"""Claims on the pocket cluster, and what binds them: a provisioner and the volume controller, moved by hand.

storage = Storage(bridge)           a class whose claims wait for their first pod, and one without a provisioner
storage.claim("data")               a claim of the first one
storage.until(lambda: …)            time passes; the provisioner makes volumes for selected nodes
"""

from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.model import kinds, names
from slurm_bridge.model.storage import NO_PROVISIONER, SELECTED_NODE
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

HOST = "kubernetes.io/hostname"
MADE, LOCAL = "made", "local"
HOOKS = [{"name": "policy"}, {"name": "eligibility"}, {"name": "kube-scheduler", "options": {"priorities": []}}]

Json = dict[str, Any]


def using(*claims: str) -> Json:
    """The spec of a pod that uses these claims."""
    return {"volumes": [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]}


def on(*nodes: str, key: str = HOST) -> Json:
    """Node affinity of a volume."""
    row = {"key": key, "operator": "In", "values": list(nodes)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [row]}]}}


class Storage:
    """`refuses`: nodes for which no volume can be made. `answers`: whether the provisioner does anything."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge, self.kube = bridge, bridge.kube
        self.refuses: set[str] = set()
        self.refused: list[str] = []
        self.answers = True
        for name, provisioner in ((MADE, "test.example/disk"), (LOCAL, NO_PROVISIONER)):
            made = {"metadata": {"name": name}, "volumeBindingMode": "WaitForFirstConsumer", "provisioner": provisioner}
            self.kube.create(kinds.STORAGECLASSES, made)

    def claim(
        self,
        name: str = "data",
        *,
        of: str = MADE,
        mode: str = "ReadWriteOnce",
        size: str = "1Gi",
        pod: tuple[str, str] | None = None,
    ) -> str:
        """A claim; its uid. `pod`: the name and uid of the one that it is made for."""
        requests = {"requests": {"storage": size}}
        spec = {"storageClassName": of, "accessModes": [mode], "resources": requests, "volumeMode": "Filesystem"}
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": pod[0], "uid": pod[1], "controller": True}] if pod else []
        metadata = {"name": name, "namespace": NAMESPACE, "ownerReferences": owners}
        made = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        return str(self.kube.create(kinds.PERSISTENTVOLUMECLAIMS, made)["metadata"]["uid"])

    def volume(self, name: str, *nodes: str, of: str = LOCAL, size: str = "1Gi", **spec: Any) -> None:
        """A volume that an administrator has made, on these nodes."""
        given = {"storageClassName": of, "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
        given |= {"volumeMode": "Filesystem", "nodeAffinity": on(*nodes), **spec}
        self.kube.create(kinds.PERSISTENTVOLUMES, {"metadata": {"name": name}, "spec": given})
        self._phase(kinds.PERSISTENTVOLUMES, ("", name), "Available")

    def read(self, name: str = "data") -> Mapping[str, Any]:
        """A claim as it is."""
        found = self.kube.get(kinds.PERSISTENTVOLUMECLAIMS, NAMESPACE, name)
        assert found is not None
        return found

    def annotations(self, name: str = "data") -> Mapping[str, str]:
        """What is written on a claim."""
        return self.read(name)["metadata"].get("annotations") or {}

    def selected(self, name: str = "data") -> str:
        """The node that was selected for a claim, "" for none."""
        return self.annotations(name).get(SELECTED_NODE, "")

    def annotate(self, name: str = "data", **values: str | None) -> None:
        """Somebody writes `selected_node` or `selected_by` on a claim."""
        keys = {"selected_node": SELECTED_NODE, "selected_by": names.ANNOTATION_SELECTED_BY}
        changes = {"metadata": {"annotations": {keys[key]: value for key, value in values.items()}}}
        self.kube.merge(kinds.PERSISTENTVOLUMECLAIMS, (NAMESPACE, name), changes)

    def touch(self, value: str) -> None:
        """Somebody changes the claim `data` in a way that means nothing."""
        self.kube.merge(kinds.PERSISTENTVOLUMECLAIMS, (NAMESPACE, "data"), {"metadata": {"labels": {"touched": value}}})

    def name(self, name: str, volume: str) -> None:
        """The claim says that it is bound to a volume, whether that is there or not."""
        self.kube.merge(kinds.PERSISTENTVOLUMECLAIMS, (NAMESPACE, name), {"spec": {"volumeName": volume}})
        self._phase(kinds.PERSISTENTVOLUMECLAIMS, (NAMESPACE, name), "Bound")

    def bind(self, name: str, volume: str) -> None:
        """What the volume controller does in the end."""
        self.name(name, volume)
        self._phase(kinds.PERSISTENTVOLUMES, ("", volume), "Bound")

    def step(self) -> None:
        """Whatever the provisioner and the volume controller have to do."""
        for volume in self.kube.list(kinds.PERSISTENTVOLUMES):
            kept = volume["spec"].get("claimRef") or {}
            if kept.get("uid"):
                self._bind_kept(kept, volume["metadata"]["name"])
        for claim in self.kube.list(kinds.PERSISTENTVOLUMECLAIMS):
            node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
            if node and not claim["spec"].get("volumeName") and self.answers:
                self.provision(claim["metadata"]["name"])

    def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Let time pass until it holds."""
        end = self.bridge.clock.now() + seconds
        while not condition():
            assert self.bridge.clock.now() < end, "\n".join(self.bridge.world.journal[-30:])
            self.bridge.step()
            self.step()

    def _bind_kept(self, kept: Mapping[str, str], volume: str) -> None:
        claim = self.kube.get(kinds.PERSISTENTVOLUMECLAIMS, kept["namespace"], kept["name"])
        if claim is not None and claim["metadata"]["uid"] == kept["uid"] and not claim["spec"].get("volumeName"):
            self.bind(kept["name"], volume)

    def provision(self, name: str) -> None:
        """Make the volume for a claim, or take the choice away."""
        uid, node = self.read(name)["metadata"]["uid"], self.selected(name)
        if node in self.refuses:
            self.refused.append(node)
            self.annotate(name, selected_node=None)
            return
        volume = f"pv-{uid}"
        kept = {"namespace": NAMESPACE, "name": name, "uid": uid}
        self.volume(volume, node, of=MADE, claimRef=kept)
        self.bind(name, volume)

    def _phase(self, kind: kinds.Kind[Any], key: tuple[str, str], phase: str) -> None:
        self.kube.merge(kind, key, {"status": {"phase": phase}}, subresource="status")
