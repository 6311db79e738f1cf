"""What `slurm-bridge explain` says of every example, in a pocket world whose clock stands still."""

import json
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from slurm_bridge import app
from slurm_bridge.demo import work
from slurm_bridge.explain import text
from slurm_bridge.kube import manifests
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.settings import loading

PROJECT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = PROJECT / "examples"
NODES = 20

_OFFICE = {
    "timezone": "Europe/Berlin",
    "opens": "08:00",
    "closes": "18:00",
    "days": ["mon", "tue", "wed", "thu", "fri"],
}

#: Hooks of examples that bring one, as their README configures it.
HOOKS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "custom-hook": (
        {"name": "policy"},
        {"name": "eligibility"},
        {"name": "office-hours", "budget_ms": 5000, "options": _OFFICE},
    ),
}

INDEX = """# The examples, explained

What `slurm-bridge explain FILE` says of each folder of [examples/](../../examples/README.md), with the configuration
that `deploy/` ships, against a cluster of 20 nodes like the one of `make e2e`. How to read it is in
[explain.md](../explain.md). `make docs` writes these pages with the code that the command runs, and a test compares.

| example | what it shows |
|---|---|
"""


def pages() -> Mapping[str, str]:
    """Every page by its name in docs/explained/."""
    folders = sorted(path for path in EXAMPLES.iterdir() if any(path.glob("*.yaml")))
    rows = "".join(f"| [{folder.name}]({folder.name}.md) | {_first(folder)} |\n" for folder in folders)
    with app.pocket_world(nodes=NODES) as world, tempfile.TemporaryDirectory() as config:
        path = pathlib.Path(config) / "config.yaml"
        path.write_text(work.configuration(PROJECT), encoding="utf-8")
        return {
            "README.md": f"{INDEX}{rows}",
            **{f"{folder.name}.md": _page(folder, path, world) for folder in folders},
        }


def _page(folder: pathlib.Path, config: pathlib.Path, world: app.PocketWorld) -> str:
    said = "\n\n".join(_explained(folder, config, world))
    (manifest,) = folder.glob("*.yaml")
    command = f"$ slurm-bridge explain {manifest.relative_to(PROJECT)} --config config.yaml"
    lines = "\n".join(_shown(folder))
    return f"# {folder.name}\n\n{lines}\n\n```\n{command}\n{said}\n```\n"


def _explained(folder: pathlib.Path, config: pathlib.Path, world: app.PocketWorld) -> Iterator[str]:
    hooks = HOOKS.get(folder.name)
    chosen = (f"hooks={json.dumps(hooks)}",) if hooks else ()
    settings = loading.load(config, {}, (*world.overrides, *chosen))
    with app.explainer(settings, offline=False, clock=VirtualClock()) as explainer:
        for path in folder.glob("*.yaml"):
            for one in explainer.manifests(manifests.documents(path.read_text(encoding="utf-8"), str(path))):
                yield text.render(one, verbose=False)


def _shown(folder: pathlib.Path) -> list[str]:
    """The two lines of its README."""
    return (folder / "README.md").read_text(encoding="utf-8").splitlines()[2:4]


def _first(folder: pathlib.Path) -> str:
    """Its first sentence."""
    return " ".join(_shown(folder)).split(". ")[0].removesuffix(".")
