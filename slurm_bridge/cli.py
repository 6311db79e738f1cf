"""The command line. Each subcommand is one function that prints for people and returns an exit status."""

import argparse
import json
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Sequence

import slurm_bridge
from slurm_bridge import app, errors
from slurm_bridge.checks import report
from slurm_bridge.daemon import administrators, queues
from slurm_bridge.demo import lines, screen, show, troubles
from slurm_bridge.explain import text
from slurm_bridge.explain.explainer import Explainer
from slurm_bridge.explain.explaining import Explanation
from slurm_bridge.kube import manifests
from slurm_bridge.runtime import garbage, threads
from slurm_bridge.settings import shown
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
    _configured(commands, "run", "schedule, until told to stop", _run)
    _configured(commands, "agent", "say which of its nodes suit a pod, until told to stop", _agent)
    _configured(commands, "check", "test what scheduling through Slurm rests on", _check)
    _configured(commands, "check-config", "print the effective configuration, or all that is wrong", _effective)
    _explain_options(_configured(commands, "explain", "what would become of a pod, and why", _explain))
    _queues_options(commands.add_parser("queues", help="queues of a daemon that runs: shown, validated, loaded anew"))
    _demo_options(commands.add_parser("demo", help="the daemon in a pocket world, without any servers"))
    return parser


def _configured(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    words: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """A command that reads the configuration."""
    parser = commands.add_parser(name, help=words)
    parser.add_argument(
        "--config", type=pathlib.Path, required=True, metavar="FILE", help="the configuration, one YAML file"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="one key of it, last word"
    )
    parser.set_defaults(run=run)
    return parser


def _configuration(options: argparse.Namespace) -> app.Configuration:
    return app.Configuration(path=options.config, environ=os.environ, overrides=options.overrides)


def _queues_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="again and again, until interrupted")
    _door_options(parser, default=None)
    parser.set_defaults(run=_queues)
    commands = parser.add_subparsers(metavar="COMMAND")
    validate = commands.add_parser("validate", help="what is wrong with a configuration; with --url, in that daemon")
    validate.add_argument("file", type=pathlib.Path, metavar="FILE", help="the configuration, one YAML file")
    validate.set_defaults(run=_queues_validate)
    reload = commands.add_parser("reload", help="have a daemon read the configuration from its storage again")
    reload.set_defaults(run=_queues_reload)
    config = commands.add_parser("config", help="print the configuration in force")
    config.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for machines")
    config.set_defaults(run=_queues_config)
    for command in (validate, reload, config):
        _door_options(command, default=argparse.SUPPRESS)
        _badge_options(command)


def _door_options(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Before a command or behind it."""
    help_url = f"where the daemon's HTTP door is (default: {queues.URL})"
    parser.add_argument("--url", default=default, help=help_url)
    parser.add_argument(
        "--ca", type=pathlib.Path, default=default, metavar="FILE", help="who signs the door's certificate"
    )


def _badge_options(parser: argparse.ArgumentParser) -> None:
    variable = administrators.VARIABLE
    parser.add_argument("--token-file", type=pathlib.Path, metavar="FILE", help=f"your token; else {variable} has it")
    parser.add_argument("--kubeconfig", type=pathlib.Path, metavar="FILE", help="the token of its user instead")
    parser.add_argument("--plain-http", action="store_true", help="let the token travel without TLS")


def _queues(options: argparse.Namespace) -> int:
    never = threading.Event()
    while True:
        found = queues.ask(options.url or queues.URL, options.ca)
        print(json.dumps(found, indent=2) if options.json else "\n".join(queues.lines(found)), flush=True)
        if options.watch is None:
            return 0
        print(flush=True)
        never.wait(max(0.1, options.watch))


def _counter(options: argparse.Namespace) -> administrators.Counter:
    badge = administrators.Badge(token_file=options.token_file, kubeconfig=options.kubeconfig, environ=os.environ)
    url = options.url or queues.URL
    return administrators.Counter(url=url, badge=badge, ca=options.ca, plain_http=options.plain_http)


def _queues_validate(options: argparse.Namespace) -> int:
    found = _counter(options).problems(options.file) if options.url else queues.problems(options.file)
    print("\n".join(found) or f"{options.file}: nothing is wrong")
    return 1 if found else 0


def _queues_reload(options: argparse.Namespace) -> int:
    words, found = _counter(options).reload()
    print("\n".join([words, *(f"  {one}" for one in found)]))
    return 1 if found else 0


def _queues_config(options: argparse.Namespace) -> int:
    found = _counter(options).config()
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    where = found["file"] or "the daemon's configuration"
    print(f"# version {found['version']} of {where}, in force since {found['since']}")
    refused = found["error"]
    if refused:
        print(
            "\n".join(
                [f"# what was read at {refused['at']} is not used:", *(f"#   {one}" for one in refused["problems"])]
            )
        )
    print(found["configuration"], end="")
    return 0


def _run(options: argparse.Namespace) -> int:
    configuration = _configuration(options)
    _serves(options, configuration)
    with app.daemon(configuration) as daemon:
        threads.install_signals(daemon.supervisor.stop)
        return daemon.run()


def _agent(options: argparse.Namespace) -> int:
    configuration = _configuration(options)
    _serves(options, configuration)
    with app.agent(configuration) as agent:
        threads.install_signals(agent.supervisor.stop)
        return agent.run()


def _serves(options: argparse.Namespace, configuration: app.Configuration) -> None:
    """A process that stays. It logs as the configuration says, or the command line where it says more."""
    garbage.collect_seldom()
    log = configuration.load().log
    logs.configure(verbosity=max(options.verbosity, log.verbosity), as_json=options.log_json or log.as_json)


def _check(options: argparse.Namespace) -> int:
    found = app.check(_configuration(options).load())
    print(report.render(found))
    return report.status(found)


def _effective(options: argparse.Namespace) -> int:
    print(shown.effective(_configuration(options).load()), end="")
    return 0


def _explain_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("subject", help="a file with manifests, - for standard input, or NAMESPACE/POD")
    parser.add_argument("--offline", action="store_true", help="ask no server: translation and policy only")
    parser.add_argument("--verbose", action="store_true", help="also what hooks say to operators only")
    parser.add_argument("--json", action="store_true", dest="as_json", help="for machines")


def _explain(options: argparse.Namespace) -> int:
    """Status 0 would be submitted, 3 would wait, 4 would be refused; of several the highest."""
    settings = _configuration(options).load()
    with app.explainer(settings, offline=options.offline) as explainer:
        found = _explained(explainer, options.subject)
    if options.as_json:
        print(json.dumps([text.document(one, verbose=options.verbose) for one in found], indent=2))
    else:
        print("\n\n".join(text.render(one, verbose=options.verbose) for one in found))
    return max(one.status for one in found)


def _explained(explainer: Explainer, subject: str) -> Sequence[Explanation]:
    path = pathlib.Path(subject)
    namespace, slash, name = subject.partition("/")
    if subject == "-":
        return explainer.manifests(manifests.documents(sys.stdin.read(), "standard input"))
    if path.is_file():
        return explainer.manifests(manifests.documents(path.read_text(encoding="utf-8"), subject))
    if not slash or "/" in name or path.suffix in (".yaml", ".yml", ".json"):
        raise errors.BadConfiguration(f"{subject!r} is neither a file nor NAMESPACE/POD")
    return [explainer.pod(namespace, name)]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be at least 1")
    return number


def _fleet(text: str) -> int:
    """So many that every example can run."""
    number = int(text)
    if number < show.FEWEST_NODES:
        raise argparse.ArgumentTypeError(f"has to be at least {show.FEWEST_NODES}")
    return number


def _version(_: argparse.Namespace) -> int:
    print(f"slurm-bridge {slurm_bridge.__version__}")
    return 0


def _demo_options(parser: argparse.ArgumentParser) -> None:
    usual = show.Options()
    parser.add_argument(
        "--pods",
        type=_positive,
        default=usual.pods,
        metavar="N",
        help="pods beside the examples (default: %(default)s)",
    )
    parser.add_argument("--nodes", type=_fleet, default=usual.nodes, metavar="N", help="nodes (default: %(default)s)")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME",
        dest="faults",
        help="let something go wrong; repeatable, `help` lists what there is",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="end when all work has ended, status 1 if it did not end well; the default without a terminal",
    )
    parser.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> int:
    if "help" in options.faults:
        print(troubles.listed())
        return 0
    for name in options.faults:
        troubles.trouble(name)
    watched = sys.stdout.isatty()
    wanted = show.Options(
        pods=options.pods, nodes=options.nodes, faults=tuple(options.faults), once=options.once or not watched
    )
    stop = threading.Event()
    threads.install_signals(stop)
    summary = _show(wanted, stop, options) if watched else show.play(wanted, lines.Lines(_print), stop)
    print(summary)
    return 0 if summary.good or not wanted.once else 1


def _show(wanted: show.Options, stop: threading.Event, options: argparse.Namespace) -> show.Summary:
    """On a terminal; the log would tear the picture, so it becomes a part of it."""
    corner = screen.LogCorner()
    logs.configure(verbosity=options.verbosity, sink=corner)
    try:
        with screen.Screen(corner) as drawn:
            return show.play(wanted, drawn, stop)
    finally:
        logs.configure(verbosity=options.verbosity, as_json=options.log_json)


def _print(text: str) -> None:
    print(text, flush=True)
