"""Both adapters before pocket worlds whose time stands still, with no socket in between."""

import dataclasses
import pathlib
import random
import threading

import pytest

from slurm_bridge.kube.client import KubeClient
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim.kube.world import PocketKube
from slurm_bridge.sim.slurm.pocket import PocketSlurm
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from tests.direct_kube import DirectAccess
from tests.direct_line import Line
from tests.direct_pool import DirectPool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """A pair of worlds, the lines to them, and the adapters at the near ends."""

    clock: VirtualClock
    kube: PocketKube
    slurm: PocketSlurm
    kube_line: Line
    slurm_line: Line
    cluster: KubeClient
    jobs: SlurmClient


@pytest.fixture
def direct(tmp_path: pathlib.Path) -> Direct:
    """Two nodes in Kubernetes, the usual ones in Slurm."""
    clock = VirtualClock()
    kube, slurm = PocketKube(clock=clock), PocketSlurm(clock=clock)
    kube.add_nodes("ext001", "ext002")
    kube_line, slurm_line = Line(kube.handler, clock=clock), Line(slurm.handler, clock=clock)
    token = tmp_path / "token"
    token.write_text(slurm.secret)
    return Direct(
        clock=clock,
        kube=kube,
        slurm=slurm,
        kube_line=kube_line,
        slurm_line=slurm_line,
        cluster=KubeClient(DirectAccess(kube_line, token=kube.token), clock=clock, dice=random.Random(1)),
        jobs=SlurmClient(
            SlurmSettings(url="http://pocket", token_file=token),
            clock=clock,
            stop=threading.Event(),
            connect=lambda _: DirectPool(slurm_line),
        ),
    )
