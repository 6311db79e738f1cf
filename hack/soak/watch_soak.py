"""Soak of list and watch on the local cluster: thousands of pods come and go while the API server dies again and again.

    python hack/soak/watch_soak.py [--pods 10000] [--kills 5] [--hands 8] [--output build/soak.json]

Ends with 0 only when the informer's cache, and what its handlers were told, equal a fresh list, twice: with pods left,
and with none. See README.md beside this file.
"""

import argparse
import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import contestants
import kubernetes.client
import kubernetes.config
import msgspec
import replay
import traffic

from slurm_bridge import ports
from slurm_bridge.kube import client, config
from slurm_bridge.model import kinds
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.runtime.http import messages

PROJECT = Path(__file__).resolve().parents[2]
SCOPE = ports.Scope(fields=f"spec.schedulerName={traffic.SCHEDULER}")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How one cache compares to a fresh list at one moment."""

    who: str
    when: str
    listed: int
    missing: int
    stale: int
    extra: int

    @property
    def equal(self) -> bool:
        return not (self.missing or self.stale or self.extra)


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """What an informer did while it ran against the API server."""

    who: str
    events: int
    troubles: int
    cpu_seconds: float


class Soak:
    """One run."""

    def __init__(self, arguments: argparse.Namespace, directory: Path) -> None:
        self.arguments = arguments
        self.directory = directory
        self.over = threading.Event()
        self.daemon = _connect(directory / "kubeconfig-daemon")
        self.admin_access = config.from_kubeconfig(directory / "kubeconfig")
        admin = _client(self.admin_access)
        name = f"soak-{secrets.token_hex(3)}"
        self.traffic = traffic.Traffic(admin, name, hands=arguments.hands, over=self.over)
        self.ours = contestants.Ours(self.daemon, SCOPE)
        self.informers: list[contestants.Contestant] = [self.ours]
        if not arguments.alone:
            self.informers.append(contestants.Package(_package_lister(directory), field_selector=SCOPE.fields))
        self.verdicts: list[Verdict] = []
        self.live: list[Live] = []
        self.outages: list[float] = []

    def run(self) -> list[replay.Rate]:
        """The whole of it, in order."""
        with self._time_limit(), ExitStack() as undo:
            self.traffic.open()
            undo.callback(self.traffic.close)
            for each in self.informers:
                each.start()
                undo.callback(each.stop)
            self._storm()
            self.live = [_lived(each) for each in self.informers]
            recording = replay.record(self.admin_access, self.traffic, count=min(2000, self.arguments.pods))
        self.sizes = replay.sizes(recording)
        return replay.rates(recording)

    def _storm(self) -> None:
        """Traffic and outages together, then two comparisons."""
        pods, kept = self.arguments.pods, self.arguments.pods // 10
        killer = threading.Thread(target=self._kill_now_and_then, args=(2 * pods - kept,), name="killer")
        killer.start()
        remaining = self.traffic.churn([f"kept-{number}" for number in range(kept)], keep=True)
        self.traffic.churn([f"brief-{number}" for number in range(pods - kept)], keep=False)
        killer.join()
        self._compare("with pods left")
        self.traffic.clear(remaining)
        self._compare("after the last pod")

    def _kill_now_and_then(self, steps: int) -> None:
        """Spread over the traffic, so that every outage meets some."""
        kills = self.arguments.kills
        for number in range(1, kills + 1):
            if not self.traffic.wait_until(steps * number // (kills + 1)):
                return
            began = time.monotonic()
            self._part("kill")
            self._part("start")
            self.outages.append(time.monotonic() - began)
            print(f"outage {number} of {kills}: {self.outages[-1]:.1f} s, {self.traffic.done} steps done", flush=True)

    def _part(self, verb: str) -> None:
        command = [str(PROJECT / "hack/cluster/part"), "kube-apiserver", verb]
        subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)

    def _compare(self, when: str) -> None:
        """A marker pod travels through each informer first: what came before it has then arrived."""
        marker = self.traffic.create(f"marker-{len(self.verdicts)}")
        arrived = [self._arrives(each, marker.uid) for each in self.informers]
        listed = {pod.uid: pod.metadata.resource_version for pod in self.daemon.list(kinds.PODS, SCOPE).items}
        for each, in_time in zip(self.informers, arrived, strict=True):
            if not in_time:
                print(f"{each.name}: has not seen the marker within its time", flush=True)
            self.verdicts.append(_verdict(each.name, when, each.held(), listed))
        self.verdicts.append(_verdict(f"{self.ours.name} handlers", when, self.ours.heard, listed))
        self.traffic.delete(marker)

    def _arrives(self, each: contestants.Contestant, uid: str) -> bool:
        return contestants.wait_until(lambda: uid in each.held(), seconds=45, over=self.over)

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        timer = threading.Timer(self.arguments.seconds, self.traffic.give_up)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _verdict(who: str, when: str, held: contestants.Held, listed: contestants.Held) -> Verdict:
    common = held.keys() & listed.keys()
    return Verdict(
        who=who,
        when=when,
        listed=len(listed),
        missing=len(listed.keys() - held.keys()),
        stale=sum(held[uid] != listed[uid] for uid in common),
        extra=len(held.keys() - listed.keys()),
    )


def _lived(each: contestants.Contestant) -> Live:
    return Live(who=each.name, events=each.events, troubles=each.troubles, cpu_seconds=each.cpu())


def _client(access: config.Access) -> client.KubeClient:
    limits = messages.Limits(answer=10, connections=32)
    return client.KubeClient(access, clock=SystemClock(), dice=random.Random(), limits=limits)


def _connect(kubeconfig: Path) -> client.KubeClient:
    return _client(config.from_kubeconfig(kubeconfig))


def _package_lister(directory: Path) -> Callable[..., object]:
    """The package's own client, with the daemon's identity."""
    configuration = kubernetes.client.Configuration()
    load: Callable[..., None] = kubernetes.config.load_kube_config
    load(str(directory / "kubeconfig-daemon"), client_configuration=configuration)
    core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
    lister: Callable[..., object] = core.list_pod_for_all_namespaces
    return lister


def _print(soak: Soak, rates: list[replay.Rate], seconds: float) -> None:
    counters = soak.ours.counters
    print(f"\n{soak.arguments.pods} pods, {len(soak.outages)} kills, {soak.traffic.retries} retries, {seconds:.0f} s")
    print(f"our informer: {counters.lists} lists, {counters.watches} watches, {counters.failures} failures\n")
    print(f"{'cache against fresh list':<26}{'when':<22}{'listed':>8}{'missing':>9}{'stale':>7}{'extra':>7}")
    for each in soak.verdicts:
        print(f"{each.who:<26}{each.when:<22}{each.listed:>8}{each.missing:>9}{each.stale:>7}{each.extra:>7}")
    print(f"\n{'live':<26}{'events':>10}{'troubles':>10}{'CPU s':>9}{'µs/event':>10}")
    for live in soak.live:
        cost = live.cpu_seconds / max(1, live.events) * 1e6
        print(f"{live.who:<26}{live.events:>10}{live.troubles:>10}{live.cpu_seconds:>9.2f}{cost:>10.0f}")
    print(f"\n{'the same recorded bytes':<26}{'what':<18}{'count':>8}{'per CPU s':>12}{'µs each':>10}")
    for rate in rates:
        print(f"{rate.who:<26}{rate.what:<18}{rate.count:>8}{rate.per_second:>12.0f}{rate.micros:>10.1f}")


def _write(soak: Soak, rates: list[replay.Rate], output: Path) -> None:
    counters = soak.ours.counters
    report = {
        "pods": soak.arguments.pods,
        "outages_seconds": soak.outages,
        "retries": soak.traffic.retries,
        "lists": counters.lists,
        "watches": counters.watches,
        "failures": counters.failures,
        "verdicts": soak.verdicts,
        "live": soak.live,
        "recording": soak.sizes,
        "rates": [{**msgspec.to_builtins(rate), "micros": rate.micros} for rate in rates],
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Soak of list and watch on the local cluster")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--hands", type=int, default=8, help="threads that create and delete")
    parser.add_argument("--seconds", type=float, default=330, help="give up after so long")
    parser.add_argument("--alone", action="store_true", help="without the informer of the kubernetes package")
    parser.add_argument("--output", type=Path, default=PROJECT / "build/soak.json")
    return parser.parse_args()


def main() -> int:
    """0 when our cache and our handlers agree with the API server, and every kill happened."""
    began = time.monotonic()
    contestants.quiet()
    soak = Soak(_arguments(), Path(os.environ.get("CLUSTER_DIR", PROJECT / ".cluster")))
    rates = soak.run()
    _print(soak, rates, time.monotonic() - began)
    _write(soak, rates, soak.arguments.output)
    ours = [verdict for verdict in soak.verdicts if verdict.who.startswith(soak.ours.name)]
    equal = all(verdict.equal for verdict in ours) and len(soak.outages) == soak.arguments.kills
    print("\nequal" if equal else "\nDIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
