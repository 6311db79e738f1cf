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
from slurm_bridge.daemon import queues
from slurm_bridge.demo import lines, screen, show, troubles
from slurm_bridge.explain import text
from slurm_bridge.explain.explainer import Explainer
from slurm_bridge.explain.explaining import Explanation
from slurm_bridge.kube import manifests
from slurm_bridge.runtime import threads
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
    _queues_options(commands.add_parser("queues", help="queues of a daemon that runs: what is used, who waits and why"))
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
    parser.add_argument("--url", default=queues.URL, help="where the daemon's HTTP door is (default: %(default)s)")
    parser.add_argument("--ca", type=pathlib.Path, metavar="FILE", help="who signs the door's certificate")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="again and again, until interrupted")
    parser.add_argument("--validate", type=pathlib.Path, metavar="FILE", help="only say what is wrong with this file")
    parser.set_defaults(run=_queues)


def _queues(options: argparse.Namespace) -> int:
    if options.validate is not None:
        problems = queues.problems(options.validate)
        print("\n".join(problems) or f"{options.validate}: nothing is wrong")
        return 1 if problems else 0
    never = threading.Event()
    while True:
        found = queues.ask(options.url, options.ca)
        print(json.dumps(found, indent=2) if options.json else "\n".join(queues.lines(found)), flush=True)
        if options.watch is None:
            return 0
        print(flush=True)
        never.wait(max(0.1, options.watch))


def _run(options: argparse.Namespace) -> int:
    configuration = _configuration(options)
    _logged(options, configuration)
    with app.daemon(configuration) as daemon:
        threads.install_signals(daemon.supervisor.stop)
        return daemon.run()


def _agent(options: argparse.Namespace) -> int:
    configuration = _configuration(options)
    _logged(options, configuration)
    with app.agent(configuration) as agent:
        threads.install_signals(agent.supervisor.stop)
        return agent.run()


def _logged(options: argparse.Namespace, configuration: app.Configuration) -> None:
    """As the configuration says, or the command line where it says more."""
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
