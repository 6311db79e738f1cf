"""Which devices processes were given, in their own words: GPUs, slices, cards (parts of them) and cpus.

Containers say it by their variables; native jobs by CUDA's, and of cpus and cards by what they ask Slurm.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from localcluster import hosts, real_dra, slurm
from localcluster.config import Config
from tests.e2e import support_devices, support_real, support_servers
from tests.e2e.support_devices import Claims
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

DEVICE_CLASS, CPUS, SLICES, CARDS = real_dra.DRIVER, real_dra.CPU_DRIVER, real_dra.SLICES, real_dra.CARD_DRIVER

#: One clock for all nodes: they are one machine.
_CLOCK = "read now rest < /proc/uptime"
#: `12.34 began NAME WORDS`, and the same when it ends.
_LINE = re.compile(r"(?P<when>\d+\.\d+) (?P<what>began|ended) (?P<name>\S+)(?P<words>[^\n]*)")
_IN_CONTAINERS = re.compile(r"(GPU|MIG|CPU|CARD)_DEVICE_(\d+)=\1-(\w+)-\2(?!\S)")
_IN_CUDA = re.compile(r"CUDA=([\d,]*)")

#: Node and name of a device.
Devices = frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Given:
    """What one process had, and for how long at least."""

    name: str
    devices: Devices
    began: float
    ended: float

    def meets(self, other: "Given") -> bool:
        """One device at one time."""
        together = self.began < other.ended and other.began < self.ended
        return together and bool(self.devices & other.devices)


def twice(given: Iterable[Given]) -> list[tuple[Given, Given]]:
    """Those that had a device at the same time."""
    return [(one, other) for one, other in itertools.combinations(given, 2) if one.meets(other)]


# -- processes that say it


def script(seconds: str) -> str:
    """Of a container."""
    return _telling('"$HOSTNAME" $(env | grep _DEVICE_)', seconds)


def pod(claims: Claims, name: str, *templates: str, seconds: str = "infinity", node: str = "", cpus: int = 1) -> Json:
    """A manifest whose only container has the devices of all claims."""
    return support_real.pod(claims.world, name, "", node=node, **spec(*templates, seconds=seconds, cpus=cpus))


def spec(*templates: str, seconds: str, cpus: int = 1) -> dict[str, Any]:
    """The same without a name."""
    containers = support_real.script(script(seconds), cpu=str(cpus))
    containers[0]["resources"]["claims"] = [{"name": one} for one in templates]
    return {**support_devices.using(*templates), "containers": containers, "terminationGracePeriodSeconds": 1}


def whole(gpus: int) -> str:
    """The option for so many GPUs that are no slices."""
    return f"--gres=gpu:{hosts.WHOLE}:{gpus}"


def submit(world: World, seconds: str, *options: str) -> int:
    """A native job."""
    shown = "scontrol --oneliner show job --details $SLURM_JOB_ID | grep -o ' Nodes=.*'"
    told = _telling(f'"$SLURM_JOB_ID" "CUDA=$CUDA_VISIBLE_DEVICES" $({shown})', seconds)
    mine = (f"--job-name={world.namespace}", f"--output=/tmp/{world.namespace}-%j")
    return support_real.submit(world, told, *mine, *options)


def _telling(words: str, seconds: str) -> str:
    name = words.split(maxsplit=1)[0]
    return f"{_CLOCK}; echo $now began {words}; sleep {seconds}; {_CLOCK}; echo $now ended {name}"


# -- what they said


def by_pods(world: World, label: str = "") -> list[Given]:
    """Of all containers that have begun; a label chooses them."""
    chosen = f"--selector={label}"
    words = ("--namespace", world.namespace, "logs", chosen, "--tail=-1", "--max-log-requests=100")
    return _read(support_servers.said(support_real.KUBECTL, *words), _container)


def by_pod(world: World, name: str) -> Given:
    """Of one container that has begun."""
    (found,) = _read(support_real.log(world, name), _container)
    return found


def _container(words: str) -> Devices:
    return frozenset((node, f"{kind.lower()}-{index}") for kind, index, node in _IN_CONTAINERS.findall(words))


def by_native(world: World) -> dict[int, Given]:
    """Job -> what it said, of all native jobs of the world that have begun."""
    config = Config.resolve(os.environ)
    command = ("sh", "-c", f"cat /tmp/{world.namespace}-* 2> /dev/null || true")
    texts = [slurm.execute(config, f"slurmd-{node}", *command) for node in ("real1", "real2")]
    return {int(one.name): one for one in _read("\n".join(texts), _native)}


def forget(world: World) -> None:
    """The native jobs of the world, and their files."""
    world.slurm.command("scancel", f"--name={world.namespace}")
    config = Config.resolve(os.environ)
    for node in ("real1", "real2"):
        slurm.execute(config, f"slurmd-{node}", "sh", "-c", f"rm -f /tmp/{world.namespace}-*")


def _native(words: str) -> Devices:
    """CUDA and Slurm have to agree."""
    held = support_real.held_in(words)
    cuda = frozenset(int(index) for index in _IN_CUDA.findall(words)[0].split(",") if index)
    assert cuda == frozenset().union(*(one.gpus for one in held.values())), words
    return flat(held)


def _read(text: str, devices: Any) -> list[Given]:
    lines = [found.groupdict() for found in _LINE.finditer(text)]
    ends = {one["name"]: float(one["when"]) for one in lines if one["what"] == "ended"}
    began = [one for one in lines if one["what"] == "began"]
    assert len({one["name"] for one in began}) == len(began), f"one began twice: {text}"
    return [
        Given(
            name=one["name"],
            devices=devices(one["words"]),
            began=float(one["when"]),
            ended=ends.get(one["name"], float("inf")),
        )
        for one in began
    ]


def slurms(world: World, job_id: int) -> Devices:
    """What Slurm says that a job has."""
    return flat(support_real.held(world, job_id))


def flat(held: dict[str, support_real.Held]) -> Devices:
    """By the names that the drivers publish; of a card a pod has one part, and all others stay free."""
    (first, *_) = hosts.real_nodes(Config(real_nodes=1))
    gpus = {
        (node, f"{'gpu' if index < first.gpus else 'mig'}-{index}") for node, one in held.items() for index in one.gpus
    }
    cards = {(node, f"card-{index}") for node, one in held.items() for index in one.cards}
    return frozenset(gpus | cards | {(node, f"cpu-{number}") for node, one in held.items() for number in one.cpus})


def but_cpus(devices: Devices) -> Devices:
    """GPUs, slices and cards."""
    return frozenset(one for one in devices if not one[1].startswith("cpu-"))


def union(given: Sequence[Given]) -> Devices:
    """All that they have."""
    return frozenset().union(*(one.devices for one in given))
