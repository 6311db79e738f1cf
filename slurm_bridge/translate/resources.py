"""What a pod requests in all, by the rules of Kubernetes: as kube-scheduler and the kubelet count it.

Init containers run one after the other before the others, so their maximum counts; restartable ones (sidecars) stay, so
they count beside every init container that follows them and beside all others. Pod-level amounts replace the sum of
the containers, and the overhead is added. A limit counts where the request is missing.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType

from slurm_bridge.model import quantity
from slurm_bridge.model.pod import Container, Pod, ResourceNeeds

Amounts = dict[str, Fraction]
Written = Mapping[str, str | int | float]

_HUGE_PAGES = "hugepages-"

#: How many pods are cached with their requests, because placing a pod reads them several times.
MOST_PODS = 4096

_known: dict[int, tuple[Pod, Mapping[str, Fraction]]] = {}

#: So many amounts are kept that pods were written with: pods by the hundred thousand ask for the same. Those with more
#: resources, or longer names of them, than any honest pod has are read for each pod.
MOST_WRITTEN = 1024
_MOST_RESOURCES = 64
_MOST_LETTERS = 4096

_read_before: dict[object, Mapping[str, Fraction]] = {}


def requests_of(pod: Pod) -> Mapping[str, Fraction]:
    """Every resource with its amount: cpu in cores, memory in bytes, one of "pods". ValueError names what is wrong."""
    known = _known.get(id(pod))
    # The id of a pod may be used again by another object once the pod is not cached any more: compare the pods.
    if known is not None and known[0] is pod:
        return known[1]
    made = _shared(pod)
    if len(_known) >= MOST_PODS:
        _known.clear()
    _known[id(pod)] = (pod, made)
    return made


def _shared(pod: Pod) -> Mapping[str, Fraction]:
    """The same mapping for all pods that are written alike."""
    written = _written(pod)
    found = _read_before.get(written)
    if found is None:
        found = MappingProxyType(_requests_of(pod))
        if len(found) <= _MOST_RESOURCES and sum(map(len, found)) <= _MOST_LETTERS:
            if len(_read_before) >= MOST_WRITTEN:
                _read_before.clear()
            _read_before[written] = found
    return found


def _written(pod: Pod) -> object:
    """All that decides about the requests, in what can be compared."""
    spec = pod.spec
    inits = tuple((one.restart_policy == "Always", one.resources.written) for one in spec.init_containers)
    of_pod = spec.resources.written if spec.resources is not None else None
    return tuple(one.resources.written for one in spec.containers), inits, of_pod, tuple(spec.overhead.items())


def forget(pods: Iterable[Pod]) -> None:
    """Drop pods that are looked at once: they may be as large as a request, and 4096 of them would stay."""
    for pod in pods:
        _known.pop(id(pod), None)


def limits_of(pod: Pod) -> Mapping[str, Fraction]:
    """Likewise with limits in place of requests where there are limits. Kubernetes itself does not count so."""
    return _requests_of(pod, limits=True)


def _requests_of(pod: Pod, *, limits: bool = False) -> Amounts:
    needs = _of_containers(pod, limits=limits)
    if pod.spec.resources is not None:
        needs.update(_of_pod(pod.spec.resources, needs, limits=limits))
    _add(needs, _read("overhead", pod.spec.overhead))
    needs["pods"] = Fraction(1)
    return needs


def _of_containers(pod: Pod, *, limits: bool) -> Amounts:
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _of_container(container, limits=limits))
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in pod.spec.init_containers:
        now = _of_container(container, limits=limits)
        if container.restart_policy == "Always":
            _add(total, now)
            _add(sidecars, now)
            _raise(highest, sidecars)
        else:
            _add(now, sidecars)
            _raise(highest, now)
    _raise(total, highest)
    return total


def _of_container(container: Container, *, limits: bool) -> Amounts:
    needs = container.resources
    chosen = {**needs.requests, **needs.limits} if limits else {**needs.limits, **needs.requests}
    return _read(f"container {container.name}", chosen)


def _of_pod(needs: ResourceNeeds, together: Mapping[str, Fraction], *, limits: bool) -> Amounts:
    """Limits count where neither the pod nor a container requests; huge pages cannot be overcommitted, so always."""
    unsaid = {name: amount for name, amount in needs.limits.items() if name not in together or _huge_pages(name)}
    chosen = {**needs.requests, **needs.limits} if limits else {**unsaid, **needs.requests}
    whole = {name: amount for name, amount in chosen.items() if name in ("cpu", "memory") or _huge_pages(name)}
    return _read("pod resources", whole)


def _huge_pages(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def _read(where: str, written: Written) -> Amounts:
    amounts: Amounts = {}
    for name, text in written.items():
        try:
            amounts[name] = quantity.parse(text)
        except ValueError as error:
            raise ValueError(f"{where}: {name}: {error}") from error
        if amounts[name] < 0:
            raise ValueError(f"{where}: {name}: {text!r} is negative")
    return amounts


def _add(total: Amounts, more: Mapping[str, Fraction]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: Amounts, least: Mapping[str, Fraction]) -> None:
    for name, amount in least.items():
        if amount > total.get(name, -1):
            total[name] = amount
