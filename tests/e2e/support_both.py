"""Pods with claims and native jobs on both real nodes at once: what each process has, and whether it is the same."""

import collections
import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping

from localcluster import hosts
from tests import wait
from tests.e2e import support_devices, support_families, support_given, support_real, support_rounds, support_world
from tests.e2e import support_servers as servers
from tests.e2e.support_devices import Claims
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_given import Given
from tests.e2e.support_servers import Json

NODES = ("real1", "real2")

#: Ends when the test connects to it.
_PORT = 9000
_UNTIL_CALLED = f"nc -l -p {_PORT} > /dev/null"

#: Slices of all profiles are one class.
_ROWS = [
    {"device_class": support_given.DEVICE_CLASS, "gres": f"gpu:{hosts.WHOLE}", "index": "index"},
    {
        "device_class": support_given.SLICES,
        "driver": support_given.DEVICE_CLASS,
        "gres": "gpu",
        "type": "profile",
        "index": "index",
    },
    {"device_class": support_given.CARDS, "gres": "card", "index": "card", "partitions": True},
    {"device_class": support_given.CPUS, "cpus": True, "index": "cpuID"},
]
_HOOKS = ({"name": "policy"}, {"name": "eligibility"}, {"name": "device-claims", "options": {"classes": _ROWS}})


@contextlib.contextmanager
def claims(kube: servers.Kubernetes, open_world: OpenWorld, name: str, **settings: object) -> Iterator[Claims]:
    """Of a daemon with the hook on the real nodes, with a template for each number of devices of each sort."""
    with support_families.granted(kube, "device-claims"):
        partition = {"partition": support_real.PARTITION}
        world = open_world(name, hooks=list(_HOOKS), defaults=partition, **settings)
        made = Claims(world=world, device_class=support_given.DEVICE_CLASS)
        for count, template in support_rounds.TEMPLATES.items():
            made.template(template, count)
        for count, template in support_rounds.CPUS.items():
            made.template(template, count, device_class=support_given.CPUS)
        for profile, template in support_rounds.SLICES.items():
            condition = f'device.attributes["{support_given.DEVICE_CLASS}"].profile == "{profile}"'
            made.template(template, 1, condition, device_class=support_given.SLICES)
        for profile, template in support_rounds.PARTS.items():
            condition = f'device.attributes["{support_given.CARDS}"].profile == "{profile}"'
            made.template(template, 1, condition, device_class=support_given.CARDS)
        yield made


def uptime() -> float:
    """Of the machine, by which processes say when they began."""
    return float(pathlib.Path("/proc/uptime").read_text().split()[0])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """Processes: of a pod its container and its job, of a native job when it began."""

    pods: Mapping[str, tuple[tuple[str, int], int]]
    native: Mapping[int, float]


class Both:
    """One pod and one native job on each node, each with a GPU, and a pod on real1 that ends when it is told to."""

    def __init__(self, claims: Claims) -> None:
        self.claims, self.world = claims, claims.world
        self.native = {node: self._submit(node) for node in NODES}
        self.pods = [self.create(f"pod-{node}", node) for node in NODES]
        self.world.create(support_real.pod(self.world, "brief", _UNTIL_CALLED, node="real1"))
        self.brief = self.await_running("brief")
        for name in self.pods:
            self.await_running(name)
        wait.until(self._native_run, "the native jobs' words", support_real.SECONDS)

    def _submit(self, node: str) -> int:
        return support_given.submit(
            self.world, "infinity", support_given.whole(1), f"--nodelist={node}", "--no-requeue"
        )

    def _native_run(self) -> bool:
        return set(self.native.values()) <= support_given.by_native(self.world).keys()

    def create(self, name: str, node: str = "", gpus: int = 1) -> str:
        """A pod with so many GPUs; its name."""
        self.world.create(support_given.pod(self.claims, name, support_rounds.TEMPLATES[gpus], node=node))
        return name

    def await_running(self, name: str, seconds: float = 120.0) -> Json:
        """Until its process runs."""
        return self.world.await_pod(name, "a process", support_real.runs, seconds)

    def hang_up(self) -> None:
        """The brief pod ends."""
        support_real.hang_up(self.brief["status"]["podIP"], _PORT)

    def seen(self) -> Seen:
        """As it is now; what does not run is not there."""
        native = support_given.by_native(self.world)
        living = {job for job in self.native.values() if support_real.state(self.world, job) == "RUNNING"}
        pods = {one["metadata"]["name"]: one for one in self.world.pods() if support_real.runs(one)}
        return Seen(
            pods={name: (support_real.container(pods[name]), support_world.job_id(pods[name])) for name in pods},
            native={job: native[job].began for job in living},
        )

    def given(self) -> list[Given]:
        """What every process that runs has in its own words; of pods it is what Slurm says."""
        pods = [one for one in self.world.pods() if support_real.runs(one) and one["spec"].get("resourceClaims")]
        found = {one["metadata"]["name"]: support_given.by_pod(self.world, one["metadata"]["name"]) for one in pods}
        for one in pods:
            name = one["metadata"]["name"]
            slurms = support_given.slurms(self.world, support_world.job_id(one))
            assert found[name].devices == support_given.but_cpus(slurms), name
        native = support_given.by_native(self.world)
        running = [job for job in self.native.values() if support_real.state(self.world, job) == "RUNNING"]
        return [*found.values(), *(native[job] for job in running)]

    def judge(self) -> None:
        """No device is in two claims, or two processes'."""
        devices = collections.Counter(self.claims.held())
        assert set(devices.values()) <= {1}, devices
        twice = support_given.twice(self.given())
        assert twice == [], twice

    def end(self) -> None:
        """A job that ends takes its pod along, a pod that ends its job; and nothing is left."""
        ended = self.world.pod("pod-real2")
        assert ended is not None
        self.world.slurm.cancel(support_world.job_id(ended))
        self.world.await_gone("pod-real2", support_real.SECONDS)
        for one in self.world.pods():
            self.world.delete(one["metadata"]["name"])
            support_real.await_free(self.world, one["metadata"]["uid"], 120.0)
        support_given.forget(self.world)
        support_rounds.await_nothing(self.claims)


def published(kube: servers.Kubernetes, node: str) -> bool:
    """Whether the driver of a node has said which devices there are."""
    slices = kube.items(f"{support_devices.GROUP}/resourceslices")
    return any(one["spec"].get("nodeName") == node for one in slices)
