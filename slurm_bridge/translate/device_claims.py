"""ResourceClaims of pods as generic resources of Slurm: how many devices of which class, and what Slurm calls them.

of a claim                                      what follows
──────────────────────────────────────────────  ──────────────────────────────────────────────────────────────
is not made, or not known, yet                  the pod waits: the claim wakes it
was not made for the pod whose template it has  refused with words
exactly N devices of a class of the table       N of its GRES, or N of the cpus
the same, where an attribute is the GRES type   one option for each type that devices have
firstAvailable                                  one option for each alternative, in order; those that Slurm cannot be
                                                asked for are passed over
all devices of a node (`All`)                   one option for each number of them that nodes have
a part of a group of CPUs (`capacity`)          so many cpus
extended resources of classes of the table      one claim for all of them, which the bridge makes (`class_resources`)
admin access, constraints, tolerations,         refused with words: Slurm gives numbers of devices, each to one
parts of other devices                          job, and does not know what the devices have in common
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from slurm_bridge.model import quantity, texts
from slurm_bridge.model.devices import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceRequest,
    DeviceSelector,
    ExactRequest,
    ResourceClaim,
)
from slurm_bridge.model.job import Gres
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import class_resources, forms, gres, shapes
from slurm_bridge.translate.class_resources import ClassClaim, ClassOf

#: The reason on pods whose claims cannot be turned into a request.
REASON: Final = "DevicesNotRequestable"
#: The reason on pods whose claims are not there yet.
MISSING: Final = "WaitsForResourceClaims"

#: By namespace and name.
ClaimKey = tuple[str, str]
Lookup = Callable[[str, str], ResourceClaim | None]

#: Devices of all requests of a claim, as Kubernetes has it.
MOST_DEVICES: Final = 32
#: Different conditions in CEL of a claim, and of all claims of a pod together.
MOST_CONDITIONS: Final = 16
MOST_OF_POD: Final = 32
#: Requests of all claims of a pod.
MOST_REQUESTS: Final = 64
#: Combinations of the alternatives of all claims of a pod.
MOST_OPTIONS: Final = 16
#: Pods that may share a claim, as Kubernetes has it.
MOST_USERS: Final = 256
#: Bytes of the parameters for the drivers in a claim.
MOST_CONFIG: Final = 64 << 10

_LONGEST: Final = 64


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """Devices of a class, and what they are in Slurm.

    `type` is the attribute whose value is the type of the GRES; a request is for one of the types. `index` is the
    attribute whose value is the index that Slurm gives, or the CPU where they are CPUs. `chosen`: Slurm gives none, and
    any device will do that no other claim holds. `capacity`: the devices are groups of CPUs, which this one counts.
    `partitions`: they are parts of what Slurm gives, and share counters.
    """

    device_class: str
    driver: str
    gres: Gres
    type: str = ""
    index: str = ""
    chosen: bool = False
    capacity: str = ""
    partitions: bool = False

    @property
    def plain(self) -> bool:
        """Its devices are just one GRES."""
        return not self.cpus and not self.type and not self.partitions

    @property
    def open(self) -> bool:
        """Of which type its devices are is not chosen yet."""
        return bool(self.type) and not self.gres.type

    def of_type(self, name: str) -> "DeviceRow":
        """Only its devices of this type."""
        return dataclasses.replace(self, gres=dataclasses.replace(self.gres, type=name))

    @property
    def cpus(self) -> bool:
        """The devices are CPUs of the node."""
        return self.gres.name == gres.CPU


Rows = Mapping[str, DeviceRow]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AskedDevices:
    """One request of a claim; `request` is its name, with that of the alternative where there are some.

    `every`: it is for all devices of a node that meet it; `count` is 0 until it is chosen how many these are. Of groups
    of CPUs `count` is how many CPUs it is for, all of one group.
    """

    request: str
    row: DeviceRow
    count: int
    selectors: tuple[str, ...] = ()
    every: bool = False

    @property
    def open(self) -> bool:
        """Of which type its devices are, or how many, is not chosen yet: nodes differ in it."""
        return self.row.open or not self.count

    def as_of(self, kind: str, count: int) -> "AskedDevices":
        """The same where that is chosen."""
        return dataclasses.replace(self, row=self.row.of_type(kind), count=count)

    @property
    def nameless(self) -> "AskedDevices":
        """The same for all requests for the same."""
        return dataclasses.replace(self, request="")

    @property
    def results(self) -> int:
        """So many devices a claim is given for it, as Kubernetes counts."""
        return 1 if self.row.capacity else self.count

    @property
    def base(self) -> str:
        """The name of the request without its alternative."""
        return self.request.partition("/")[0]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodClaim:
    """A claim of a pod, and what it asks for. `made`: it is for extended resources, and may have to be made yet."""

    claim: ResourceClaim
    asked: tuple[AskedDevices, ...]
    made: ClassClaim | None = None

    @property
    def served(self) -> bool:
        """The claim has devices for just these requests."""
        allocation = self.claim.status.allocation
        found = allocation.devices.results if allocation is not None else ()
        return {one.request for one in found} == {one.request for one in self.asked}


#: What a request of a claim that is open may be for, by what nodes have.
Forms = Callable[[AskedDevices, ResourceClaim], Sequence[AskedDevices]]
#: The claims of a pod, with one alternative for each of their requests.
Option = tuple[PodClaim, ...]
#: What the claims of a pod ask for.
Wish = tuple[AskedDevices, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unrequestable:
    """Why no request can be made of a claim; `missing`: the claim is not there, and wakes the pod when it is."""

    message: str
    missing: bool = False


def no_forms(_asked: AskedDevices, _claim: ResourceClaim) -> Sequence[AskedDevices]:
    """No node has such devices."""
    return ()


def options(
    pod: Pod, claim_of: Lookup, rows: Rows, class_of: ClassOf = class_resources.no_class, forms_of: Forms = no_forms
) -> tuple[Option, ...] | Unrequestable:
    """What the claims of a pod may ask for, the most wanted first; or the first thing that is wrong with them.

    Each claim is there once, in the order of the pod's spec. Without alternatives there is one option.
    """
    found: dict[ClaimKey, tuple[PodClaim, ...]] = {}
    requests = 0
    for number, entry in enumerate(pod.spec.resource_claims):
        where = f"Pod {'/'.join(pod.key)}: spec.resourceClaims[{number}] ({_word(entry.get('name'))})"
        name = _claim_name(pod, entry)
        if isinstance(name, Unrequestable):
            return dataclasses.replace(name, message=f"{where} {name.message}")
        if name is None:
            continue
        claim = claim_of(pod.metadata.namespace, name)
        requests += len(claim.spec.devices.requests) if claim is not None else 0
        if requests > MOST_REQUESTS:
            return Unrequestable(
                message=f"Pod {'/'.join(pod.key)}: the ResourceClaims have more requests together than a pod may have, "
                f"at most {MOST_REQUESTS} are allowed"
            )
        made = _read(pod, entry, name, claim, rows, forms_of)
        if isinstance(made, Unrequestable):
            return dataclasses.replace(made, message=f"{where}: {made.message}")
        found.setdefault(made[0].claim.key, made)
    of_classes = _of_classes(pod, claim_of, rows, class_of)
    if isinstance(of_classes, Unrequestable):
        return of_classes
    if of_classes is not None:
        found[of_classes.claim.key] = (of_classes,)
    absurd = _too_much(list(found.values()))
    if absurd:
        return Unrequestable(message=f"Pod {'/'.join(pod.key)}: the ResourceClaims have {absurd}")
    return tuple(itertools.product(*found.values()))


def _too_much(claims: Sequence[tuple[PodClaim, ...]]) -> str:
    different = len({text for each in claims for claim in each for one in claim.asked for text in one.selectors})
    if different > MOST_OF_POD:
        return f"{different} different selectors; at most {MOST_OF_POD} are allowed"
    many = math.prod(map(len, claims))
    return f"{many} combinations of alternatives; at most {MOST_OPTIONS} are allowed" if many > MOST_OPTIONS else ""


def _of_classes(pod: Pod, claim_of: Lookup, rows: Rows, class_of: ClassOf) -> PodClaim | Unrequestable | None:
    """The claim for its extended resources of DeviceClasses; None where it has none."""
    made, where = class_resources.of(pod, class_of), f"Pod {'/'.join(pod.key)}"
    if made is None:
        return None
    for request in made.requests:
        wrong = next(_no_row(_each(request), rows), "")
        if wrong:
            return Unrequestable(message=f"{where}: an extended resource {wrong}")
    asked = tuple(one for request in made.requests for one in _alternatives(request, rows))
    other = next((one.row.device_class for one in asked if not one.row.plain), "")
    if other:
        text = f"an extended resource asks for DeviceClass {other}"
        text = f"{text}, whose devices are CPUs, parts of devices, or of several types in Slurm"
        return Unrequestable(message=f"{where}: {text}; ask for them by a ResourceClaim")
    absurd = next(_too_many(asked), "")
    if absurd:
        return Unrequestable(message=f"{where}: the extended resources of DeviceClasses: {absurd}")
    found = claim_of(pod.metadata.namespace, made.name)
    if found is not None and not class_resources.made_for(pod, found):
        called = f"ResourceClaim {'/'.join(found.key)}"
        return Unrequestable(message=f"{where}: {called} was not created for this pod, and has its name; delete it")
    nothing = ResourceClaim(metadata=ObjectMeta(name=made.name, namespace=pod.metadata.namespace))
    return PodClaim(claim=found or nothing, asked=asked, made=made)


def wish(option: Iterable[PodClaim]) -> Wish:
    """What all claims of a pod ask for together."""
    return tuple(one for claim in option for one in claim.asked)


def meant(found: Sequence[Option], asked: tuple[Gres, ...] | None) -> Sequence[Option]:
    """The options for which Slurm was asked; all where that is not known. Extended resources are asked for apart."""
    if len(found) == 1:
        return found
    same = [one for one in found if gres_of(wish([claim for claim in one if claim.made is None])) == asked]
    return same or found


def asks(pod: Pod, class_of: ClassOf) -> bool:
    """Whether it asks for devices that are given to claims."""
    return bool(pod.spec.resource_claims) or class_resources.of(pod, class_of) is not None


def names(pod: Pod, class_of: ClassOf = class_resources.no_class) -> frozenset[ClaimKey]:
    """The claims of a pod as far as they have names, whatever is known of them."""
    found = [_claim_name(pod, entry) for entry in pod.spec.resource_claims]
    if class_resources.of(pod, class_of) is not None:
        found.append(class_resources.name_of(pod))
    return frozenset((pod.metadata.namespace, name) for name in found if isinstance(name, str))


def gres_of(asked: Wish) -> tuple[Gres, ...]:
    """What Slurm is asked for, for all of them together."""
    return shapes.added([(dataclasses.replace(one.row.gres, count=max(one.count, 1)),) for one in asked])


def shared(pods: Sequence[Pod]) -> Mapping[ClaimKey, tuple[Pod, ...]]:
    """The claims that several of these pods use, and these in the order of their uids."""
    users: dict[ClaimKey, list[Pod]] = {}
    for pod in pods:
        for key in names(pod) if pod.spec.resource_claims else ():
            users.setdefault(key, []).append(pod)
    return {key: tuple(sorted(found, key=_uid)) for key, found in users.items() if len(found) > 1}


def _uid(pod: Pod) -> str:
    return pod.uid


def _claim_name(pod: Pod, entry: Mapping[str, object]) -> str | Unrequestable | None:
    """The name of the claim behind an entry; None where the cluster says that the entry needs none."""
    direct, template = entry.get("resourceClaimName"), entry.get("resourceClaimTemplateName")
    if isinstance(direct, str) and direct:
        return direct
    if not isinstance(template, str) or not template:
        return Unrequestable(message="names neither a ResourceClaim nor a ResourceClaimTemplate")
    made = next((one for one in pod.status.resource_claim_statuses if one.name == entry.get("name")), None)
    if made is None:
        text = f"waits for the ResourceClaim that kube-controller-manager makes of ResourceClaimTemplate {template}"
        return Unrequestable(message=text, missing=True)
    return made.resource_claim_name


def _read(
    pod: Pod, entry: Mapping[str, object], name: str, claim: ResourceClaim | None, rows: Rows, forms_of: Forms
) -> tuple[PodClaim, ...] | Unrequestable:
    """One for each combination of its alternatives."""
    called = f"ResourceClaim {pod.metadata.namespace}/{_word(name)}"
    if claim is None:
        return Unrequestable(message=f"{called} does not exist", missing=True)
    if claim.metadata.deletion_timestamp is not None:
        return Unrequestable(message=f"{called} is being deleted", missing=True)
    if "resourceClaimName" not in entry and not class_resources.made_for(pod, claim):
        return Unrequestable(message=f"{called} was not created for this pod")
    wrong = next(_wrong(claim, rows), "")
    if wrong:
        return Unrequestable(message=f"{called}: {wrong}")
    each = [_chosen(_alternatives(one, rows), claim, forms_of) for one in claim.spec.devices.requests]
    many = math.prod(map(len, each))
    if many > MOST_OPTIONS:
        text = f"spec.devices.requests have {many} combinations of alternatives; at most {MOST_OPTIONS} are allowed"
        return Unrequestable(message=f"{called}: {text}")
    made = tuple(PodClaim(claim=claim, asked=asked) for asked in itertools.product(*each))
    absurd = [next(_too_many(one.asked), "") for one in made]
    possible = tuple(one for one, wrong in zip(made, absurd, strict=True) if not wrong)
    # Devices of which nodes have too many together are not the claim's fault.
    return possible or Unrequestable(message=f"{called}: {absurd[0]}")


def _too_many(asked: Sequence[AskedDevices]) -> Iterator[str]:
    devices = sum(one.results for one in asked)
    if devices > MOST_DEVICES:
        yield f"the counts of spec.devices.requests add up to {devices}; at most {MOST_DEVICES} are allowed"
    conditions = len({text for one in asked for text in one.selectors})
    if conditions > MOST_CONDITIONS:
        yield f"spec.devices.requests have {conditions} different selectors; at most {MOST_CONDITIONS} are allowed"


def _wrong(claim: ResourceClaim, rows: Rows) -> Iterator[str]:
    """What Slurm cannot be asked for, field by field."""
    devices = claim.spec.devices
    if devices.constraints:
        yield (
            "spec.devices.constraints are not supported, because Slurm knows nothing that devices have in common; "
            "leave them out"
        )
    size = sum(one.size for one in devices.config)
    if size > MOST_CONFIG:
        yield f"spec.devices.config has {size} bytes; at most {MOST_CONFIG} are allowed"
    for number, config in enumerate(devices.config):
        if config.size and not config.driver:
            yield f"spec.devices.config[{number}] names no driver, or is nested too deeply to be read"
    yield from _chosen_by_users(claim, rows)
    for number, request in enumerate(devices.requests):
        where = f"spec.devices.requests[{number}] ({_word(request.name)})"
        alternatives = _each(request)
        known = [one for _, one in alternatives if one.device_class_name in rows]
        if not alternatives:
            yield f"{where} has neither exactly nor firstAvailable"
        elif not known:
            yield from (f"{where} {text}" for text in _no_row(alternatives, rows))
        elif not _alternatives(request, rows):
            yield from (f"{where} {text}" for text in _beyond(known[0], rows[known[0].device_class_name]))


def _chosen_by_users(claim: ResourceClaim, rows: Rows) -> Iterator[str]:
    """Parameters for the driver of a group name its CPUs, and these are not the user's to choose."""
    drivers = drivers_of_groups(rows)
    for number, config in enumerate(claim.spec.devices.config if drivers else ()):
        if config.driver in drivers:
            yield (
                f"spec.devices.config[{number}] has parameters for driver {config.driver}, with which this bridge says "
                "which CPUs the claim gets; leave them out"
            )


def drivers_of_groups(rows: Rows) -> frozenset[str]:
    """They are told by the bridge, and by it alone, which CPUs a claim has."""
    return frozenset(row.driver for row in rows.values() if row.capacity)


def _no_row(alternatives: Sequence[tuple[str, ExactRequest]], rows: Rows) -> Iterator[str]:
    if not any(one.device_class_name in rows for _, one in alternatives):
        said = ", ".join(_word(one.device_class_name) for _, one in alternatives[:3])
        yield (
            f"asks for DeviceClass {said}, which is not in the table of hook device-claims "
            f"({', '.join(sorted(rows)) or 'empty'}); ask the operators, or use one that is"
        )


def _beyond(one: ExactRequest, row: DeviceRow) -> Iterator[str]:
    if one.admin_access:
        yield "has adminAccess: devices with admin access are in use by others, and Slurm gives none of these"
    if one.allocation_mode not in (EXACT_COUNT, ALL_DEVICES):
        mode = _word(one.allocation_mode)
        yield f"has allocationMode {mode}, which is not supported; write ExactCount and count, or All"
    if one.allocation_mode == ALL_DEVICES and row.partitions:
        yield "is for all devices, and these are parts that overlap; write ExactCount and count"
    if one.allocation_mode == EXACT_COUNT and not 1 <= one.count <= gres.MOST_COUNT:
        yield f"has count {texts.shown(str(one.count))}, use 1 to {gres.MOST_COUNT}"
    if one.tolerations:
        yield "has tolerations: devices with taints are given to no pod; leave them out"
    if row.capacity:
        yield from _beyond_group(one, row)
    elif one.capacity and row.cpus:
        yield "has capacity: CPUs of this class are published one by one; leave it out, and write count"
    elif one.capacity:
        yield "has capacity: Slurm gives whole devices; leave it out, or select devices by their capacity with CEL"
    if any(selector.cel is None for selector in one.selectors):
        yield "has a selector that is not CEL"


def _beyond_group(one: ExactRequest, row: DeviceRow) -> Iterator[str]:
    """What is asked of groups of CPUs is a part of one of them."""
    if one.allocation_mode != EXACT_COUNT or one.count != 1:
        yield f"is for several groups of CPUs: write count 1, and capacity.requests[{row.capacity}] for the CPUs of one"
    elif _cpus(one, row) is None:
        yield (
            f"needs capacity.requests with {row.capacity} and nothing else: how many CPUs, a whole number from 1 to "
            f"{forms.MOST_SHORT}"
        )


def _cpus(one: ExactRequest, row: DeviceRow) -> int | None:
    """How many CPUs of a group are asked for; None where that is not said as it has to be."""
    asked = (one.capacity or {}).get("requests")
    named = {row.capacity, row.capacity.removeprefix(f"{row.driver}/"), f"{row.driver}/{row.capacity}"}
    if not isinstance(asked, Mapping) or len(asked) != 1 or not named.intersection(asked):
        return None
    (amount,) = asked.values()
    try:
        found = quantity.parse(amount)
    except ValueError:
        return None
    return int(found) if found.denominator == 1 and 1 <= found <= forms.MOST_SHORT else None


def _each(request: DeviceRequest) -> Sequence[tuple[str, ExactRequest]]:
    """Its alternatives, by the names that their devices have in an allocation."""
    if request.exactly is not None:
        return [(request.name, request.exactly)]
    return [(f"{request.name}/{one.name}", one) for one in request.first_available]


def _alternatives(request: DeviceRequest, rows: Rows) -> tuple[AskedDevices, ...]:
    """Those that Slurm can be asked for."""
    known = (pair for pair in _each(request) if pair[1].device_class_name in rows)
    return tuple(_of_row(name, one, rows) for name, one in known if not any(_beyond(one, rows[one.device_class_name])))


def _chosen(alternatives: Iterable[AskedDevices], claim: ResourceClaim, forms_of: Forms) -> tuple[AskedDevices, ...]:
    """Each type, and each number of all devices, is an alternative; where no node has any it stays open."""
    return tuple(form for one in alternatives for form in ((tuple(forms_of(one, claim)) if one.open else ()) or (one,)))


def _of_row(name: str, one: ExactRequest, rows: Rows) -> AskedDevices:
    row = rows[one.device_class_name]
    every = one.allocation_mode == ALL_DEVICES
    count = 0 if every else (_cpus(one, row) or 1) if row.capacity else one.count
    return AskedDevices(request=name, row=row, count=count, selectors=expressions(one.selectors), every=every)


def expressions(selectors: Iterable[DeviceSelector]) -> tuple[str, ...]:
    """The conditions in CEL."""
    return tuple(one.cel.expression for one in selectors if one.cel is not None)


def _word(written: object) -> str:
    text = str(written or "")
    return texts.shown(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
