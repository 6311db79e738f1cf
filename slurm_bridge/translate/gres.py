"""Generic resources: as users write them, as pods imply them, and as Slurm spells them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction

from slurm_bridge.model import quantity, texts
from slurm_bridge.model.job import Gres

#: Slurm's word for no resources; it removes a default.
NONE = "none"

#: How the cores that ResourceClaims ask for stand among generic resources: in Slurm none has this name.
CPU = "cpu"

#: The largest count. Counts are sent as text, and Slurm truncates larger ones.
MOST_COUNT = 4_294_967_293

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
#: Models may begin with a digit (`1g.10gb`), but only digits would be a count.
_TYPE = re.compile(r"(?=.*[A-Za-z_])[A-Za-z0-9_.-]{1,64}")
_COUNT = re.compile(r"[0-9]{1,10}")

#: How Slurm itself writes them, in `--tres-per-task` and in `--gres` of old scripts.
_PREFIX = re.compile(r"^gres[/:](?=[A-Za-z_])", re.IGNORECASE)


def parse(text: str) -> tuple[Gres, ...]:
    """`gpu`, `gpu:2`, `GPU:V100:2,nic:1`, `gres/gpu=2`, `gres:gpu:2`, or `none`; ValueError for anything else."""
    if text.strip().lower() == NONE:
        return ()
    found = tuple(_parse_one(part.strip()) for part in text.split(","))
    if len({spell(_lower(one)) for one in found}) < len(found):
        raise ValueError(f"{texts.bounded(text, 100)!r} names a resource twice")
    return found


def parse_kind(text: str) -> Gres:
    """`gpu` or `gpu:v100`: what one device of an extended resource stands for."""
    name, colon, kind = text.partition(":")
    if not _NAME.fullmatch(name) or (colon and not _TYPE.fullmatch(kind)):
        raise ValueError(f"{text!r} is not name[:type]")
    return Gres(name=name, type=kind, count=1)


def is_type(text: str) -> bool:
    """Whether Slurm could have such a type."""
    return _TYPE.fullmatch(text) is not None


def write(gres: Iterable[Gres]) -> str:
    """In the notation of Slurm: `gpu:v100:2,nic:1`."""
    return ",".join(f"{spell(one)}:{one.count}" for one in gres) or NONE


def spell(one: Gres) -> str:
    """Name and type without the count."""
    return f"{one.name}:{one.type}" if one.type else one.name


def derive(requests: Mapping[str, Fraction], names: Mapping[str, str]) -> tuple[Gres, ...]:
    """The devices among the requests of a pod; kinds of device with the same name in Slurm are added up."""
    counts: dict[str, int] = {}
    for resource, name in names.items():
        count = quantity.whole(requests.get(resource, Fraction(0)))
        if count > 0:
            counts[name] = counts.get(name, 0) + count
    return tuple(_counted(parse_kind(name), count) for name, count in counts.items())


def too_many(requests: Mapping[str, Fraction], names: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the devices that a pod requests: Slurm would cut such counts to what fits."""
    for one in derive(requests, names):
        if one.count > MOST_COUNT:
            yield f"requests {texts.shown(str(one.count))} of gres {spell(one)}; at most {MOST_COUNT} are allowed"


def respell(one: Gres, known: Collection[Gres]) -> Gres | None:
    """In the case in which Slurm spells it; None when Slurm has nothing of that name and type."""
    exact = [other for other in known if _fits(one, other)]
    same = exact or [other for other in known if _fits(_lower(one), _lower(other))]
    if not same:
        return None
    found = min(same, key=spell)
    return Gres(name=found.name, type=found.type if one.type else "", count=one.count)


def _parse_one(text: str) -> Gres:
    bare = _PREFIX.sub("", text, count=1)
    # In Slurm's own spelling a count may also stand behind an equals sign.
    text, sign = bare, "=" if bare != text and "=" in bare else ":"
    kind, _, last = text.rpartition(sign)
    counted = bool(kind) and _COUNT.fullmatch(last) is not None
    one = _counted(parse_kind(kind if counted else text), int(last) if counted else 1)
    if not 1 <= one.count <= MOST_COUNT:
        raise ValueError(f"{text!r} asks for {one.count}")
    return one


def _counted(one: Gres, count: int) -> Gres:
    return Gres(name=one.name, type=one.type, count=count)


def _lower(one: Gres) -> Gres:
    return Gres(name=one.name.lower(), type=one.type.lower(), count=one.count)


def _fits(asked: Gres, there: Gres) -> bool:
    """A request without a type fits any type."""
    return asked.name == there.name and asked.type in ("", there.type)
