"""`up`, `down`, `status` and `part`: one loop over the parts for each.

up       build -> start whatever does not run as configured, both halves at once -> .cluster/env
down     stop in the opposite order -> remove the folder; with --purge also the build products
status   a table; fails when something that should run does not
part     hurt or heal one part, for tests
"""

import argparse
import concurrent.futures
import contextlib
import functools
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from localcluster import dockerd, engine, envfile, leftovers, lock, packages, parts, progress, table
from localcluster.config import Config
from localcluster.part import Contributing, Explaining, Hurtable, Part, PartError, Prepared


def up(config: Config) -> None:
    """Whatever runs as configured is left alone; everything else is started or repaired."""
    begin = time.monotonic()
    packages.require(*packages.ALWAYS)
    stages = parts.stages(config)
    _leave_other_ports(config)
    _stop_unwanted(config)
    config.save()
    for stage in stages:
        _in_parallel([functools.partial(_bring_chain_up, chain, config) for chain in stage])
    _write_environment(config)
    took = time.monotonic() - begin
    progress.say("cluster", f"up in {took:.1f} s: {config.nodes} nodes; KUBECONFIG={config.directory / 'kubeconfig'}")


def _leave_other_ports(config: Config) -> None:
    """Nothing can be converged across ports: clients would keep talking to the old ones."""
    stored = Config.load(config.directory)
    if stored is not None and stored.port_base != config.port_base:
        progress.say("cluster", f"was on ports from {stored.port_base}: stopping it first")
        _stop_all(stored)


def _stop_unwanted(config: Config) -> None:
    """Parts that the cluster had and is to have no more."""
    stored = Config.load(config.directory)
    if stored is not None:
        wanted = {part.name for part in parts.of(config)}
        _stop(stored, [part for part in parts.of(stored) if part.name not in wanted])


def _in_parallel(tasks: Sequence[Callable[[], None]]) -> None:
    """All run to their end, also when one fails; then every failure is told."""
    with concurrent.futures.ThreadPoolExecutor(len(tasks)) as pool:
        errors = [task.exception() for task in [pool.submit(task) for task in tasks]]
    expected = [str(error) for error in errors if isinstance(error, PartError)]
    for error in errors:
        if error is not None and not isinstance(error, PartError):
            raise error
    if expected:
        raise PartError("\n".join(expected))


def _bring_chain_up(chain: Sequence[Part], config: Config) -> None:
    """Builds first, so that no server waits idle for another's compiler."""
    for part in chain:
        if isinstance(part, Prepared):
            with _named(part):
                part.prepare(config)
    for part in chain:
        _bring_up(part, config)


def _bring_up(part: Part, config: Config) -> None:
    found = state(part, config)
    if found is not None:
        progress.say(part.name, f"already: {found}")
        return
    with _named(part), progress.timed(part.name, "starting", "up"):
        part.start(config)


@contextlib.contextmanager
def _named(part: Part) -> Iterator[None]:
    """An error says whose it is."""
    try:
        yield
    except PartError as error:
        raise PartError(f"{part.name}: {error}") from error


def state(part: Part, config: Config) -> str | None:
    """A part that cannot even be asked does not run."""
    try:
        return part.state(config)
    except PartError:
        return None


def _write_environment(config: Config) -> None:
    numbers = {"NODES": config.nodes, "REAL_NODES": config.real_nodes, "FRAMEWORKS": int(config.frameworks)}
    lines = {"CLUSTER_DIR": str(config.directory), **{name: str(number) for name, number in numbers.items()}}
    for part in parts.of(config):
        if isinstance(part, Contributing):
            lines |= part.environment(config)
    envfile.write(config.directory, lines)


def down(config: Config, *, purge: bool) -> None:
    """Leave nothing of the cluster; what was built stays for the next one, unless it is purged."""
    engine.require_no_borrowers(config)
    _stop_all(config)
    if left := leftovers.found(config):
        raise PartError("\n  ".join(["this is left:", *left]))
    if config.directory.exists():
        shutil.rmtree(config.directory)
    if purge:
        _purge(config)
    progress.say("cluster", "down" + (", build products removed" if purge else ""))


def _purge(config: Config) -> None:
    """Not under a neighbour's engine, which has its images there."""
    if not dockerd.is_own(config) and dockerd.home(config).exists():
        raise PartError(f"the cluster in {dockerd.home(config).parent} works with {config.cache}: stop it first")
    shutil.rmtree(config.cache, ignore_errors=True)


def _stop_all(config: Config) -> None:
    """Every part, also after one that will not stop; the folder stays then, because the pid files are in it."""
    _stop(config, parts.of(config))


def _stop(config: Config, stopped: Sequence[Part]) -> None:
    failures = []
    for part in reversed(stopped):
        begin = time.monotonic()
        try:
            with _named(part):
                part.stop(config)
        except PartError as error:
            failures.append(str(error))
        else:
            progress.say(part.name, f"stopped ({time.monotonic() - begin:.1f} s)")
    if failures:
        raise PartError("\n".join(failures))


def status(config: Config) -> int:
    """0 when everything runs that should."""
    # All at once: a frozen server must not be waited for in turn.
    asked = parts.of(config)
    with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
        looks = list(pool.map(lambda part: _look(part, config), asked))
    print(table.render([line for line, _ in looks]))
    for line, why in looks:
        if why:
            print(f"{line.name} is down: {why}")
    return 0 if all(line.state is not None for line, _ in looks) else 1


def _look(part: Part, config: Config) -> tuple[table.Line, str]:
    """Its line, and why it does not run; it is asked once more, because a busy machine may answer late."""
    found, why = state(part, config), ""
    if found is None and isinstance(part, Explaining):
        try:
            why = part.why_down(config)
        except PartError as error:
            why = str(error)
        found = None if why else state(part, config)
    return table.line(part, config, found), why


SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}
VERBS = (*SIGNALS, "stop", "start", "restart")


def _do(verb: str, part: Part, config: Config) -> None:
    """Signals go out at once, also while an `up` works; the other verbs take their turn."""
    if verb in SIGNALS:
        if not isinstance(part, Hurtable):
            raise PartError(f"{part.name} has no process of its own")
        part.signal(config, SIGNALS[verb])
        return
    with _exclusive(config):
        if verb in ("stop", "restart"):
            part.stop(config)
        if verb in ("start", "restart"):
            part.start(config)


def _part(name: str, config: Config) -> Part:
    known = {part.name: part for part in parts.of(config)}
    if name not in known:
        raise PartError(f"no part is called {name}: there are {', '.join(known)}")
    return known[name]


def _exclusive(config: Config) -> contextlib.AbstractContextManager[None]:
    """One command at a time per cluster; on the folder above, because `down` removes the cluster's own."""
    return lock.exclusive(config.directory.parent, "cluster")


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hack/cluster", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up")
    commands.add_parser("status")
    commands.add_parser("down").add_argument("--purge", action="store_true", help="remove the build products as well")
    part = commands.add_parser("part")
    part.add_argument("name", help="as `status` calls it")
    part.add_argument("verb", choices=VERBS)
    return parser.parse_args(argv)


def _run(arguments: argparse.Namespace) -> int:
    config = Config.resolve(os.environ)
    match arguments.command:
        case "up":
            with _exclusive(config):
                up(config)
        case "down":
            with _exclusive(config):
                down(Config.load(config.directory) or config, purge=arguments.purge)
        case "part":
            _do(arguments.verb, _part(arguments.name, config), config)
        case _:
            return status(config)
    return 0


def main(argv: Sequence[str]) -> int:
    """The exit status of one command."""
    try:
        return _run(_arguments(argv))
    except PartError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
