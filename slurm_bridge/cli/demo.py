"""`slurm-bridge demo`: the real daemon between a pocket Kubernetes and a pocket Slurm."""

import argparse
import functools
import sys
import threading
from collections.abc import Mapping
from typing import Any

from slurm_bridge.cli.configured import Commands
from slurm_bridge.demo import lines, screen, show, troubles
from slurm_bridge.model import texts
from slurm_bridge.runtime import safe_yaml, threads
from slurm_bridge.telemetry import logs


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser("demo", help="run the daemon between pocket servers; no cluster is needed")
    usual = show.DemoOptions()
    parser.add_argument(
        "--pods",
        type=functools.partial(_at_least, 1),
        default=usual.pods,
        metavar="N",
        help="pods beside the examples (default: %(default)s)",
    )
    parser.add_argument(
        "--nodes",
        type=functools.partial(_at_least, show.FEWEST_NODES),
        default=usual.nodes,
        metavar="N",
        help="nodes (default: %(default)s)",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME",
        dest="faults",
        help="inject a fault; repeatable; `help` lists the faults",
    )
    parser.add_argument(
        "--hook",
        action="append",
        default=[],
        type=_hook,
        metavar="HOOK",
        dest="hooks",
        help="a hook at the end of the chain: its name, or '{name: …, options: {…}}'; repeatable",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="end when all pods have ended, with status 0 if all completed; the default without a terminal",
    )
    parser.set_defaults(run=_demo)


def _at_least(least: int, text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"has to be at least {least}")
    return number


def _hook(text: str) -> Mapping[str, Any]:
    """An entry of the key `hooks`, as the configuration has it."""
    try:
        found = safe_yaml.load(text)
    except safe_yaml.NotYaml as error:
        raise argparse.ArgumentTypeError(f"{texts.shown(text)!r} is not YAML: {error}") from error
    entry = {"name": found} if isinstance(found, str) else found
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise argparse.ArgumentTypeError(f"{texts.shown(text)!r}: use a name, or a mapping with the key name")
    return entry


def _demo(options: argparse.Namespace) -> int:
    if "help" in options.faults:
        print(troubles.listed())
        return 0
    for name in options.faults:
        troubles.trouble(name)
    watched = sys.stdout.isatty()
    wanted = show.DemoOptions(
        pods=options.pods,
        nodes=options.nodes,
        faults=tuple(options.faults),
        hooks=tuple(options.hooks),
        once=options.once or not watched,
    )
    stop = threading.Event()
    threads.install_signals(stop)
    if watched:
        summary = _on_screen(wanted, stop, options)
    else:
        summary = show.play(wanted, lines.LineDisplay(functools.partial(print, flush=True)), stop)
    print(summary)
    return 0 if summary.good or not wanted.once else 1


def _on_screen(wanted: show.DemoOptions, stop: threading.Event, options: argparse.Namespace) -> show.Summary:
    """Draw on the terminal; the log becomes a part of the picture, because lines between would tear it."""
    corner = screen.LogCorner()
    logs.configure(verbosity=options.verbosity, sink=corner)
    try:
        with screen.Screen(corner) as drawn:
            return show.play(wanted, drawn, stop)
    finally:
        logs.configure(verbosity=options.verbosity, as_json=options.log_json)
