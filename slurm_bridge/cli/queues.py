"""`slurm-bridge queues`: the queues of a running daemon, and their configuration."""

import argparse
import json
import os
import pathlib
import threading

from slurm_bridge.cli import admin_client, pages, queue_client
from slurm_bridge.cli.configured import Commands
from slurm_bridge.families.yunikorn import text


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command and its subcommands."""
    parser = commands.add_parser("queues", help="show, validate or reload the queues of a running daemon")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="print again every SECONDS, until interrupted")
    _server_options(parser, default=None)
    parser.set_defaults(run=_show)
    subcommands = parser.add_subparsers(metavar="COMMAND")
    validate = subcommands.add_parser(
        "validate", help="list the errors in a configuration; with --url, ask that daemon"
    )
    validate.add_argument("file", type=pathlib.Path, metavar="FILE", help="the configuration, one YAML file")
    validate.add_argument(
        "--several-places",
        action="store_true",
        help="allow one name below several parents, as the hook does with `one_place: false`; ignored with --url",
    )
    validate.set_defaults(run=_validate)
    reload = subcommands.add_parser("reload", help="make the daemon read the stored configuration again")
    reload.set_defaults(run=_reload)
    config = subcommands.add_parser("config", help="print the configuration in force")
    config.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    config.set_defaults(run=_config)
    for command in (validate, reload, config):
        _server_options(command, default=argparse.SUPPRESS)
        admin_client.add_token_options(command)


def _server_options(parser: argparse.ArgumentParser, default: str | None) -> None:
    """`--url` and `--ca`; they may stand before a subcommand or after it."""
    parser.add_argument("--url", default=default, help=f"URL of the daemon's HTTP server (default: {queue_client.URL})")
    parser.add_argument(
        "--ca", type=pathlib.Path, default=default, metavar="FILE", help="CA that signed the server's certificate"
    )


def _show(options: argparse.Namespace) -> int:
    never = threading.Event()
    while True:
        with pages.default_server(assumed=not options.url):
            found = queue_client.ask(options.url or queue_client.URL, options.ca)
        print(json.dumps(found, indent=2) if options.json else "\n".join(text.lines(found)), flush=True)
        if options.watch is None:
            return 0
        print(flush=True)
        never.wait(max(0.1, options.watch))


def _client(options: argparse.Namespace) -> admin_client.AdminClient:
    credentials = admin_client.TokenSource(
        token_file=options.token_file, kubeconfig=options.kubeconfig, environ=os.environ
    )
    url = options.url or queue_client.URL
    return admin_client.AdminClient(
        url=url, credentials=credentials, ca=options.ca, plain_http=options.plain_http, assumed=not options.url
    )


def _validate(options: argparse.Namespace) -> int:
    if options.url:
        found = _client(options).check(options.file)
    else:
        found = queue_client.check(options.file, one_place=not options.several_places)
    lines = [*found.problems, *(f"warning: {one}" for one in found.warnings)]
    print("\n".join(lines if found.problems else [*lines, f"{options.file}: nothing is wrong"]))
    return 1 if found.problems else 0


def _reload(options: argparse.Namespace) -> int:
    words, found = _client(options).reload()
    print("\n".join([words, *(f"  {one}" for one in found)]))
    return 1 if found else 0


def _config(options: argparse.Namespace) -> int:
    found = _client(options).config()
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    where = found["file"] or "the daemon's configuration"
    print(f"# version {found['version']} of {where}, in force since {found['since']}")
    refused = found["error"]
    if refused:
        lines = [f"# what was read at {refused['at']} is not used:", *(f"#   {one}" for one in refused["problems"])]
        print("\n".join(lines))
    print(found["configuration"], end="")
    return 0
