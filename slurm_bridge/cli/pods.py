"""`kubectl slurm why`, `jobs` and `retry`: what a user does with pods of the bridge, with the rights of the user."""

import argparse
import functools
import time
from collections.abc import Callable, Sequence

from slurm_bridge import errors
from slurm_bridge.cli import daemon_config, shown_pods, user_access
from slurm_bridge.cli.configured import Commands
from slurm_bridge.cli.daemon_config import SoughtPods
from slurm_bridge.cli.shown_pods import ShownPod
from slurm_bridge.cli.user_access import UserCluster
from slurm_bridge.model import kinds, names, texts

Command = Callable[[argparse.Namespace, UserCluster, Sequence[ShownPod], SoughtPods], int]


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the commands."""
    why = commands.add_parser("why", help="why pods wait, and what to do: one line for each")
    why.add_argument("subjects", nargs="*", metavar="POD|KIND/NAME", help="(default: all that wait, by reason)")
    jobs = commands.add_parser("jobs", help="the placeholder jobs of the pods: state, reason, nodes")
    jobs.add_argument("--ended", action="store_true", help="show pods that have ended, too")
    retry = commands.add_parser("retry", help="take back the parking of workloads whose job was cancelled")
    retry.add_argument("subjects", nargs="*", metavar="POD|KIND/NAME", help="which pods")
    retry.add_argument("--all", action="store_true", dest="every", help="all parked pods of the namespace")
    for parser, run, everywhere in ((why, _why, True), (jobs, _jobs, True), (retry, _retry, False)):
        user_access.add(parser, everywhere=everywhere)
        parser.add_argument("--daemon", metavar="NAMESPACE[/NAME]", help="where the ConfigMap of the daemon is")
        parser.set_defaults(run=functools.partial(_with_pods, run))


def _with_pods(run: Command, options: argparse.Namespace) -> int:
    with user_access.opened(options) as user:
        sought = daemon_config.sought(user.cluster, options.daemon)
        every = shown_pods.listed(user.cluster, user.namespace, sought)
        if others := {one.pod.spec.scheduler_name for one in every}.difference(sought.scheduler_names):
            named = texts.listed(sorted(others))
            daemon_config.tell([f"of pods with the scheduler name {named} only those with a node are shown: {sought}"])
        return run(options, user, every, sought)


def _why(options: argparse.Namespace, user: UserCluster, every: Sequence[ShownPod], sought: SoughtPods) -> int:
    if options.subjects:
        for said in shown_pods.lines(shown_pods.found(every, options.subjects, user.namespace, sought)):
            print(texts.plain(said))
        return 0
    lines = list(shown_pods.dominant(every)) or [_none("waits", user, every, sought)]
    print("\n".join(map(texts.plain, lines)))
    return 0


def _jobs(options: argparse.Namespace, user: UserCluster, every: Sequence[ShownPod], sought: SoughtPods) -> int:
    rows = shown_pods.jobs(every, ended=options.ended)
    if len(rows) == 1:
        over = f"; {len(every)} have ended: --ended shows them" if every else ""
        does = "runs, waits or has ended" if options.ended else "runs or waits"
        print(texts.plain(_none(does, user, every, sought) + over))
        return 0
    first = 0 if user.namespace is None else 1
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row[first:], widths[first:], strict=True))
        print(texts.plain("  ".join(cells).rstrip()))
    return 0


def _retry(options: argparse.Namespace, user: UserCluster, every: Sequence[ShownPod], sought: SoughtPods) -> int:
    """Status 1: one of the pods is not parked, or could not be changed."""
    if bool(options.subjects) == options.every:
        raise errors.BadConfiguration("name pods or what makes them, or give --all")
    chosen = every if options.every else shown_pods.found(every, options.subjects, user.namespace, sought)
    parked = [
        one.pod for one in chosen if names.ANNOTATION_PARKED in one.pod.metadata.annotations and not one.pod.bound
    ]
    for one in chosen:
        if one.pod not in parked and not options.every:
            print(texts.plain(f"{'/'.join(one.pod.key)} is not parked: {shown_pods.line(one)}"))
    # One value for all: members of a gang that differ in it would only be read as one longer text.
    value, failed = str(time.time_ns()), 0
    for pod in parked:
        try:
            user.cluster.patch(kinds.PODS, pod, {"metadata": {"annotations": {names.ANNOTATION_RETRY: value}}})
        except errors.BridgeError as problem:
            failed += 1
            print(texts.plain(f"{'/'.join(pod.key)}: {problem}"))
        else:
            print(texts.plain(f"{'/'.join(pod.key)} is tried again"))
    if not chosen or (options.every and not parked):
        print(texts.plain(_none("is parked", user, every, sought)))
    return 1 if failed or (not options.every and len(parked) < len(chosen)) else 0


def _none(does: str, user: UserCluster, every: Sequence[ShownPod], sought: SoughtPods) -> str:
    """That no pod does this; where no pod of the bridge was found at all, also which pods were looked for."""
    place = f"namespace {user.namespace}" if user.namespace is not None else "the cluster"
    return f"no pod of the bridge {does} in {place}" + ("" if every else f": {sought}")
