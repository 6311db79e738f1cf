"""What the pods of a workload ask of their place that some hook has to honour: the one table of these.

Preferences are no demands, and no pod waits for one. Of equal demands of many pods the first stands for all. The name
of a claim or of a resource does not tell whether it is a demand: `hooks.honouring` looks at the object.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from slurm_bridge.model.features import Demand, Feature
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import apart
from slurm_bridge.translate.members import subject

#: Resources of this domain are devices of the class that follows.
DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
#: Names of this domain are Kubernetes' own, and no class of devices may take them.
_NATIVE: Final = "kubernetes.io/"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

#: The most letters of a user's value in a message.
_LONGEST: Final = 64


def of(workload: Workload) -> tuple[Demand, ...]:
    """All of those that have no node yet, each once."""
    found: dict[tuple[Feature, tuple[str, str] | None, str], Demand] = {}
    for pod in workload.pods:
        for find in () if pod.bound else _TABLE:
            for one in find(pod, workload):
                found.setdefault((one.feature, one.claim, one.resource), one)
    return tuple(found.values())


def _spread(pod: Pod, _workload: Workload) -> Iterator[Demand]:
    for number, one in enumerate(pod.spec.topology_spread_constraints):
        if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            where = f"spec.topologySpreadConstraints[{number}] ({_word(one.get('topologyKey'))}, DoNotSchedule)"
            yield Demand(feature=Feature.TOPOLOGY_SPREAD, subject=subject(pod), field=where)


def _near(pod: Pod, _workload: Workload) -> Iterator[Demand]:
    for where, _ in _required(pod, "podAffinity"):
        yield Demand(feature=Feature.POD_AFFINITY, subject=subject(pod), field=where)


def _away(pod: Pod, workload: Workload) -> Iterator[Demand]:
    """Members of one gang that keep apart from each other are one for each node: Slurm is asked for that itself."""
    for where, term in _required(pod, "podAntiAffinity"):
        if workload.gang is None or not apart.means_its_like(term, pod):
            yield Demand(feature=Feature.POD_ANTI_AFFINITY, subject=subject(pod), field=where)


def _ports(pod: Pod, _workload: Workload) -> Iterator[Demand]:
    """Init containers that end before the others start hold no port for long."""
    spec = pod.spec
    rows = [("containers", number, one) for number, one in enumerate(spec.containers)]
    rows += [
        ("initContainers", number, one)
        for number, one in enumerate(spec.init_containers)
        if one.restart_policy == "Always"
    ]
    for where, number, container in rows:
        for place, port in enumerate(container.ports):
            if port.host_port > 0:
                field = f"spec.{where}[{number}].ports[{place}].hostPort ({port.host_port})"
                yield Demand(feature=Feature.HOST_PORTS, subject=subject(pod), field=field)


def _claimed(pod: Pod, _workload: Workload) -> Iterator[Demand]:
    """A claim that is made for the pod itself (an ephemeral one) is used by no other pod."""
    for number, one in enumerate(pod.spec.volumes):
        used = one.get("persistentVolumeClaim")
        if isinstance(used, Mapping):
            name = str(used.get("claimName", ""))
            field = f"spec.volumes[{number}] (PersistentVolumeClaim {_word(name)}, ReadWriteOncePod)"
            claim = (pod.metadata.namespace, name)
            yield Demand(feature=Feature.SOLE_CLAIMS, subject=subject(pod), field=field, claim=claim)


def _devices(pod: Pod, _workload: Workload) -> Iterator[Demand]:
    feature, whose = Feature.RESOURCE_CLAIMS, subject(pod)
    for number, one in enumerate(pod.spec.resource_claims):
        yield Demand(feature=feature, subject=whose, field=f"spec.resourceClaims[{number}] ({_word(one.get('name'))})")
    for where, containers in (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers)):
        for number, container in enumerate(containers):
            for name in (*container.resources.limits, *container.resources.requests):
                if "/" in name and (name.startswith(DEVICE_CLASS) or _NATIVE not in name):
                    field = f"spec.{where}[{number}].resources ({_word(name)})"
                    behind = "" if name.startswith(DEVICE_CLASS) else name
                    yield Demand(feature=feature, subject=whose, field=field, resource=behind)


#: A further feature that only some hooks honour is one more row here, and one more member of `model.features.Feature`.
_TABLE: Sequence[Callable[[Pod, Workload], Iterator[Demand]]] = (_spread, _near, _away, _ports, _claimed, _devices)


def _required(pod: Pod, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each term that must hold, and the name of its field."""
    written = (pod.spec.affinity or {}).get(kind)
    terms = written.get(_REQUIRED) if isinstance(written, Mapping) else None
    for number, term in enumerate(terms or () if isinstance(terms, list | tuple | None) else ()):
        if isinstance(term, Mapping):
            yield f"spec.affinity.{kind}.{_REQUIRED}[{number}] ({_word(term.get('topologyKey'))})", term


def _word(written: object) -> str:
    """A user's value as far as a message has room for it."""
    text = str(written or "")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
