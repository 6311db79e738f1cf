"""The command line. Each subcommand is one function that prints for people and returns an exit status."""

import argparse
import sys
import threading
from collections.abc import Sequence

import slurm_bridge
from slurm_bridge import app, demo, errors
from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import Manifest
from slurm_bridge.telemetry import logs


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and do what it says; errors of ours end in one line and status 1."""
    options = _parser().parse_args(arguments)
    logs.configure(verbosity=options.verbosity, as_json=options.log_json)
    try:
        status: int = options.run(options)
    except errors.BridgeError as error:
        print(f"slurm-bridge: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slurm-bridge", description=slurm_bridge.__doc__)
    parser.add_argument("--verbosity", type=int, default=0, metavar="N", help="4 debug, 7 trace (default: %(default)s)")
    parser.add_argument("--log-json", action="store_true", help="log lines for machines")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=_version)
    shown = commands.add_parser("demo", help="take pods from pending to done in the pocket world")
    shown.add_argument("--pods", type=_positive, default=12, metavar="N", help="how many (default: %(default)s)")
    shown.add_argument(
        "--nodes", type=_positive, default=4, metavar="N", help="nodes of both worlds (default: %(default)s)"
    )
    shown.add_argument("--once", action="store_true", help="end after the summary; else serve both APIs until Ctrl-C")
    shown.set_defaults(run=_demo)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be at least 1")
    return number


def _version(_: argparse.Namespace) -> int:
    print(f"slurm-bridge {slurm_bridge.__version__}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    stop = threading.Event()
    with app.pocket_world(nodes=options.nodes) as world:
        print(f"pocket Kubernetes {world.kube_url}   pocket slurmrestd {world.slurm_url}")
        walk = demo.Walk(cluster=world.cluster, slurm=world.slurm, clock=world.clock, stop=stop)
        begin = world.clock.now()
        pods = [world.cluster.create(kinds.PODS, "default", _pod(number)) for number in range(options.pods)]
        for step in walk.run(pods):
            name = step.pod.metadata.name
            print(f"{world.clock.now() - begin:6.2f} s  {name:<10} {step.what:<10} job {step.job_id}  {step.node}")
        calls = len(world.kube_calls.journal), len(world.slurm_calls.journal)
        print(f"{len(pods)} pods done; {calls[0]} calls to Kubernetes, {calls[1]} to Slurm")
        if not options.once:
            print("both servers stay up until Ctrl-C")
            stop.wait()
    return 0


def _pod(number: int) -> Manifest:
    """A pod that ends by itself after a second."""
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    marks = {"kwok.local/outcome": "succeed", "kwok.local/seconds": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:02}", "annotations": marks},
        "spec": {"schedulerName": names.SCHEDULER_NAME, "containers": [container], "restartPolicy": "Never"},
    }
