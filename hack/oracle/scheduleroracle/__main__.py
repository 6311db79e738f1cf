"""`make oracle`: so many random pods on random clusters; fails when the hook and kube-scheduler differ about one."""

import argparse
import collections
import pathlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence

import yaml

from localcluster import alone
from localcluster.api import ApiError
from localcluster.config import PROJECT
from scheduleroracle import answers, bridge, clusters, objects, pods, reference, servers
from scheduleroracle.answers import Answer
from scheduleroracle.bridge import Bridge
from scheduleroracle.draws import Draws, Json
from scheduleroracle.objects import Objects
from scheduleroracle.reference import Reference
from slurm_bridge.runtime import progress
from slurm_bridge.runtime.progress import ProgressBar

#: Pods of one cluster.
PODS = 5
#: The two see changes by streams of their own: where they differ, both are asked again.
TRIES = 3
SHOWN = 3
FINDINGS = PROJECT / "build" / "oracle"
PAUSE = 0.3


class Oracle:
    """Compares the two, one pod after the other."""

    def __init__(self, made: Objects, theirs: Reference, ours: Bridge) -> None:
        self._objects, self._theirs, self._ours = made, theirs, ours
        self.cases = self.fits = self.choices = self.refused = 0
        self.known: collections.Counter[str] = collections.Counter()
        self.deciding: collections.Counter[str] = collections.Counter()

    def cluster(self, seed: int, number: int, count: int) -> Iterator[Json]:
        """What differs in one cluster: each with its pod, both answers and all objects."""
        draws = Draws(f"{seed}/{number}")
        cluster = clusters.cluster(draws)
        self._objects.clear()
        there = self._objects.build(cluster)
        self._ours.await_objects(there)
        for place in range(count):
            manifest = pods.pod(draws, f"case-{number}-{place}", cluster.nodes)
            manifest["spec"]["schedulerName"] = pods.SCHEDULER
            if cluster.promises:
                pods.without_empty_selectors(manifest)
            found = self._compared(manifest)
            if found:
                yield {"seed": seed, "cluster": number, **found, "cluster objects": list(cluster.objects)}

    def _compared(self, manifest: Json) -> Json | None:
        try:
            wrong, hook, theirs = self._asked(manifest)
        except ApiError as error:
            if not objects.refused(error):
                raise
            self.refused += 1
            return None
        self.cases += 1
        self.fits += bool(theirs.fit)
        self.choices += len(theirs.fit) > 1
        self.deciding.update(hook.deciding)
        if not wrong:
            return None
        if reason := answers.known(hook, theirs, manifest):
            self.known[reason] += 1
            return None
        shown = {"hook": hook.shown(), "kube-scheduler": theirs.shown()}
        return {"difference": wrong[0], **shown, "pod": manifest}

    def _asked(self, manifest: Json) -> tuple[Sequence[str], Answer, Answer]:
        for attempt in range(TRIES):
            time.sleep(PAUSE * attempt)
            made = self._objects.create(manifest)
            try:
                theirs, hook = self._theirs.ask(made), self._ours.ask(made)
            finally:
                self._objects.remove(made)
            wrong = [*answers.differences(hook, theirs)]
            if not wrong or answers.known(hook, theirs, manifest):
                break
        return wrong, hook, theirs


def main() -> int:
    """Print a line for each difference, and all about the first of them."""
    parser = argparse.ArgumentParser(prog="make oracle", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="so many pods")
    parser.add_argument("--seed", type=int, default=1, help="other clusters and pods with each")
    parser.add_argument("--cluster", type=int, help="only the cluster of this number")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return _run(chosen)
    except alone.NotBuilt as lacking:
        print(f"make oracle: {lacking}", file=sys.stderr)
        return 2


def _run(chosen: argparse.Namespace) -> int:
    began = time.monotonic()
    numbers = range(-(-chosen.cases // PODS)) if chosen.cluster is None else [chosen.cluster]
    FINDINGS.mkdir(parents=True, exist_ok=True)
    found: list[pathlib.Path] = []
    with servers.started() as running:
        made = Objects(running.client)
        made.prepare()
        with reference.started(running, made) as theirs, bridge.started(running.kubeconfig) as ours:
            oracle = Oracle(made, theirs, ours)
            with progress.bar("clusters", sys.stderr) as bar:
                for done, number in enumerate(numbers):
                    bar.step(done, len(numbers), f"{oracle.cases} pods, {len(found)} differ")
                    for one in oracle.cluster(chosen.seed, number, PODS):
                        found.append(_report(one, len(found), bar))
    seconds = time.monotonic() - began
    told = f"{oracle.cases} pods on {len(numbers)} clusters of seed {chosen.seed} in {seconds:.0f} s"
    kinds = f"{oracle.fits} fit somewhere, {oracle.choices} had a choice, {oracle.refused} were refused as invalid"
    print(f"{told}: {kinds}, {len(found)} differ")
    for reason, times in oracle.known.most_common():
        print(f"  {times} differ on purpose: {reason}")
    print("  pods by what decided:", ", ".join(f"{times} {what}" for what, times in oracle.deciding.most_common()))
    return 1 if found else 0


def _report(one: Json, before: int, bar: ProgressBar) -> pathlib.Path:
    file = FINDINGS / f"{one['seed']}-{one['pod']['metadata']['name']}.yaml"
    text = yaml.dump(one, Dumper=Plain, sort_keys=False, width=120)
    file.write_text(text)
    repeat = f"make oracle SEED={one['seed']} CLUSTER={one['cluster']}"
    bar.line(f"{one['pod']['metadata']['name']}: {one['difference']} ({file}; again: {repeat})")
    if before < SHOWN:
        bar.line(text)
    return file


class Plain(yaml.SafeDumper):
    """Without anchors: what stands twice is written twice."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


if __name__ == "__main__":
    sys.exit(main())
