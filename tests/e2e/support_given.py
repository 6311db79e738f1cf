"""Which GPUs processes were given, in their own words: containers by their variables, native jobs by CUDA's."""

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

DEVICE_CLASS = real_dra.DRIVER

#: One clock for all nodes: they are one machine.
_CLOCK = "read now rest < /proc/uptime"
#: `12.34 began NAME WORDS`, and the same when it ends.
_LINE = re.compile(r"(?P<when>\d+\.\d+) (?P<what>began|ended) (?P<name>\S+)(?P<words>[^\n]*)")
_IN_CONTAINERS = re.compile(r"GPU_DEVICE_(\d+)=GPU-(\w+)-\1(?!\S)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Given:
    """What one process had, and for how long at least."""

    name: str
    gpus: frozenset[tuple[str, int]]
    began: float
    ended: float

    def meets(self, other: "Given") -> bool:
        """One device at one time."""
        together = self.began < other.ended and other.began < self.ended
        return together and bool(self.gpus & other.gpus)


def twice(given: Iterable[Given]) -> list[tuple[Given, Given]]:
    """Those that had a device at the same time."""
    return [(one, other) for one, other in itertools.combinations(given, 2) if one.meets(other)]


# -- processes that say it


def script(seconds: str) -> str:
    """Of a container."""
    return _telling('"$HOSTNAME" $(env | grep ^GPU_DEVICE_)', seconds)


def pod(claims: Claims, name: str, template: str, seconds: str = "infinity", *, node: str = "") -> Json:
    """A manifest whose only container has the devices of a claim."""
    return support_real.pod(claims.world, name, "", node=node, **spec(template, seconds))


def spec(template: str, seconds: str) -> dict[str, Any]:
    """The same without a name."""
    containers = support_real.script(script(seconds))
    containers[0]["resources"]["claims"] = [{"name": "gpus"}]
    return {**support_devices.using(template), "containers": containers, "terminationGracePeriodSeconds": 1}


def submit(world: World, gpus: int, seconds: str = "infinity", *options: str) -> int:
    """A native job."""
    told = _telling('"$SLURM_JOB_ID" "$SLURMD_NODENAME" "$CUDA_VISIBLE_DEVICES"', seconds)
    mine = (f"--job-name={world.namespace}", f"--output=/tmp/{world.namespace}-%j")
    return support_real.submit(world, told, f"--gres=gpu:{hosts.WHOLE}:{gpus}", *mine, *options)


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


def _container(words: str) -> frozenset[tuple[str, int]]:
    return frozenset((node, int(index)) for index, node in _IN_CONTAINERS.findall(words))


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


def _native(words: str) -> frozenset[tuple[str, int]]:
    node, indices = words.split()
    return frozenset((node, int(index)) for index in indices.split(","))


def _read(text: str, devices: Any) -> list[Given]:
    lines = [found.groupdict() for found in _LINE.finditer(text)]
    ends = {one["name"]: float(one["when"]) for one in lines if one["what"] == "ended"}
    began = [one for one in lines if one["what"] == "began"]
    assert len({one["name"] for one in began}) == len(began), f"one began twice: {text}"
    return [
        Given(
            name=one["name"],
            gpus=devices(one["words"]),
            began=float(one["when"]),
            ended=ends.get(one["name"], float("inf")),
        )
        for one in began
    ]


def slurms(world: World, job_id: int) -> frozenset[tuple[str, int]]:
    """What Slurm says that a job has."""
    return flat(support_real.held(world, job_id))


def flat(held: dict[str, support_real.Held]) -> frozenset[tuple[str, int]]:
    """Node and index of each GPU."""
    return frozenset((node, index) for node, one in held.items() for index in one.gpus)


def union(given: Sequence[Given]) -> frozenset[tuple[str, int]]:
    """All that they have."""
    return frozenset().union(*(one.gpus for one in given))
