"""`slurm-bridge explain`: what the daemon would do with a manifest or a pod, and why."""

import argparse
import contextlib
import json
import pathlib
import sys
from collections.abc import Iterator, Sequence

from slurm_bridge import app, errors
from slurm_bridge.cli import configured, daemon_config, user_access
from slurm_bridge.cli.configured import Commands
from slurm_bridge.explain import text
from slurm_bridge.explain.explainer import Explainer
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.kube import manifests


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command."""
    words = "show how a pod would be scheduled, and why"
    parser = configured.add(commands, "explain", words, _explain, required=False)
    parser.add_argument(
        "subject", metavar="FILE|POD", help="a file with manifests, - for standard input, or [NAMESPACE/]POD"
    )
    parser.add_argument("--offline", action="store_true", help="ask no server: translation and policy only")
    parser.add_argument("--verbose", action="store_true", help="also print what hooks report to operators only")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    parser.add_argument(
        "--daemon",
        metavar="NAMESPACE[/NAME]",
        help="without --config: where the ConfigMap of the daemon is (default: looked for by its label)",
    )
    user_access.add(parser)


def _explain(options: argparse.Namespace) -> int:
    """Status 0: would be submitted, 3: would wait, 4: would be refused; of several workloads the highest."""
    way = _configured if options.config is not None else _assumed if options.offline else _found
    with way(options) as (explainer, namespace):
        found = _explained(explainer, options.subject, namespace)
    if options.as_json:
        print(json.dumps([text.document(one, verbose=options.verbose) for one in found], indent=2))
    else:
        print("\n\n".join(text.render(one, verbose=options.verbose) for one in found))
    return max(one.status for one in found)


@contextlib.contextmanager
def _configured(options: argparse.Namespace) -> Iterator[tuple[Explainer, str | None]]:
    """As the daemon: with its configuration and its rights."""
    settings = configured.configuration(options).load_with_hooks()
    with app.explainer(settings, offline=options.offline) as explainer:
        yield explainer, options.namespace


@contextlib.contextmanager
def _found(options: argparse.Namespace) -> Iterator[tuple[Explainer, str | None]]:
    """As a user: by the configuration that the user may read, with what the user may read of the pods."""
    with user_access.opened(options) as user:
        found = daemon_config.find(user.cluster, options.daemon, options.overrides)
        daemon_config.tell(found.notes)
        with app.explainer(found.settings, offline=True, cluster=user.cluster) as explainer:
            yield explainer, user.namespace


@contextlib.contextmanager
def _assumed(options: argparse.Namespace) -> Iterator[tuple[Explainer, str | None]]:
    """By the defaults, without any server."""
    found = daemon_config.assumed("no configuration was given", options.overrides)
    daemon_config.tell(found.notes)
    with app.explainer(found.settings, offline=True) as explainer:
        yield explainer, options.namespace


def _explained(explainer: Explainer, subject: str, namespace: str | None) -> Sequence[Explanation]:
    path = pathlib.Path(subject)
    given, slash, name = subject.rpartition("/")
    if subject == "-":
        return explainer.manifests(manifests.documents(sys.stdin.read(), "standard input"))
    if path.is_file():
        return explainer.manifests(manifests.documents(path.read_text(encoding="utf-8"), subject))
    inside = given if slash else namespace
    if not inside or not name or "/" in inside or path.suffix in (".yaml", ".yml", ".json"):
        raise errors.BadConfiguration(f"{subject!r} is neither a file nor NAMESPACE/POD")
    return [explainer.pod(inside, name)]
