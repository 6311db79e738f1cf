"""`slurm-bridge top`: the live view of a running daemon on a terminal, or once as text or JSON."""

import argparse
import json
import os
import pathlib
import shutil
import sys
import time

from slurm_bridge import errors
from slurm_bridge.cli import admin_client, live_rows, queue_client, top_text
from slurm_bridge.cli.configured import Commands
from slurm_bridge.cli.live_client import LiveClient
from slurm_bridge.cli.live_rows import LiveRows, RowChoice

#: So wide is a page that goes into a pipe.
_WIDE = 200


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser("top", help="show the workloads, nodes and queues of a running daemon, live")
    parser.add_argument("--url", help=f"URL of the daemon's HTTP server (default: {queue_client.URL})")
    parser.add_argument("--ca", type=pathlib.Path, metavar="FILE", help="CA that signed the server's certificate")
    admin_client.add_token_options(parser, also="; none is needed on loopback")
    parser.add_argument("-n", "--namespace", default="", help="show the workloads of this namespace only")
    parser.add_argument("--stage", choices=tuple(live_rows.CHOICES), default="active", help="(default: %(default)s)")
    parser.add_argument("--reason", default="", help="show workloads that wait for this reason only")
    parser.add_argument("--search", default="", metavar="TEXT", help="show workloads that match this text only")
    parser.add_argument("--sort", choices=tuple(live_rows.ORDERS), default="age", help="(default: %(default)s)")
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    parser.add_argument("--once", action="store_true", help="print the workloads once; the default without a terminal")
    parser.add_argument("--json", action="store_true", help="print all rows once, as JSON with a name for each field")
    parser.set_defaults(run=_top)


def _top(options: argparse.Namespace) -> int:
    credentials = admin_client.TokenSource(
        token_file=options.token_file, kubeconfig=options.kubeconfig, environ=os.environ
    )
    client = LiveClient(
        url=options.url or queue_client.URL,
        credentials=credentials,
        ca=options.ca,
        plain_http=options.plain_http,
        namespace=options.namespace,
        assumed=not options.url,
    )
    choice = RowChoice(
        stages=options.stage,
        reason=options.reason,
        text=options.search,
        order=options.sort,
        reverse=options.reverse,
    )
    if options.json or options.once or not sys.stdout.isatty():
        return _once(client, choice, as_json=options.json)
    try:
        from slurm_bridge.cli import top_screen  # noqa: PLC0415 - a Python without curses has all other commands
    except ImportError as missing:
        raise errors.BadConfiguration(f"this Python has no curses ({missing}): use --once or --json") from missing
    top_screen.show(client, choice)
    return 0


def _once(client: LiveClient, choice: RowChoice, *, as_json: bool) -> int:
    found = client.snapshot()
    rows = LiveRows(found)
    rows.apply(found)
    workloads = choice.of(rows.workloads.values())
    if as_json:
        about = {key: found[key] for key in ("cluster", "version", "now", "all_namespaces", "totals")}
        shown = {
            **about,
            "workloads": workloads,
            "nodes": list(rows.nodes.values()),
            "queues": list(rows.queues),
            "left_out": rows.left_out,
        }
        print(json.dumps(shown, indent=2))
        return 0
    width = shutil.get_terminal_size((_WIDE, 24)).columns if sys.stdout.isatty() else _WIDE
    head, lines = top_text.workloads(workloads, width, time.time())
    print("\n".join(top_text.plain([*top_text.header(rows, "once", "workloads", choice)[:3], [], head, *lines])))
    return 0
