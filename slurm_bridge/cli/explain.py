"""`slurm-bridge explain`: what the daemon would do with a manifest or a pod, and why."""

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

from slurm_bridge import app, errors
from slurm_bridge.cli import configured
from slurm_bridge.cli.configured import Commands
from slurm_bridge.explain import text
from slurm_bridge.explain.explainer import Explainer
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.kube import manifests


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = configured.add(commands, "explain", "show how a pod would be scheduled, and why", _explain)
    parser.add_argument("subject", help="a file with manifests, - for standard input, or NAMESPACE/POD")
    parser.add_argument("--offline", action="store_true", help="ask no server: translation and policy only")
    parser.add_argument("--verbose", action="store_true", help="also print what hooks report to operators only")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")


def _explain(options: argparse.Namespace) -> int:
    """Status 0: would be submitted, 3: would wait, 4: would be refused; of several workloads the highest."""
    settings = configured.configuration(options).load()
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
