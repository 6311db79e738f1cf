"""What `slurm-bridge explain` says of every example, in a pocket world whose clock stands still."""

import dataclasses
import json
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import yaml

from slurm_bridge import app
from slurm_bridge.demo import pocket, work
from slurm_bridge.explain import text
from slurm_bridge.kube import manifests
from slurm_bridge.model import names
from slurm_bridge.model.meta import Manifest
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.settings import loader
from slurm_bridge.settings.model import Settings

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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A pod that a family of hooks has something to say about: words above it, the hook, and what its spec adds."""

    words: str
    hook: Mapping[str, object]
    spec: Mapping[str, object] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def manifest(self) -> Manifest:
        """The pod."""
        amounts = {"requests": {"cpu": "1", "memory": "100Mi"}, "limits": {"memory": "100Mi"}}
        main = {"name": "main", "image": "busybox:stable", "command": ["sleep", "3"], "resources": amounts}
        spec = {"schedulerName": names.SCHEDULER_NAME, "restartPolicy": "Never", "containers": [main], **self.spec}
        marks = {"annotations": self.annotations} if self.annotations else {}
        metadata = {"name": "one", "namespace": "slurm-bridge", **marks}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _preferring(weight: int, nodes: Sequence[str]) -> Mapping[str, object]:
    hosts = {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}
    return {"weight": weight, "preference": {"matchExpressions": [hosts]}}


_NEAR = {"labelSelector": {"matchLabels": {"app": "database"}}, "topologyKey": "kubernetes.io/hostname"}
_BETTER = [_preferring(100, ["ext003", "ext004"]), _preferring(40, ["ext005", "ext006"])]

_RACKS = "\n".join(f"SwitchName=rack{one} Nodes=ext[{5 * one - 4:03}-{5 * one:03}]" for one in (1, 2, 3))

#: For each family a pod that waits, and one that shows how nodes are chosen.
FAMILIES: Mapping[str, Shown] = {
    "kai-sets": Shown(
        words="Sets of [kai](../kai.md): the pod is to be in some rack, and is offered one rack after the\nother.",
        hook={
            "name": "kai",
            "options": {"topologies": [{"name": "halls", "levels": ["rack"], "source": "copy", "conf": _RACKS}]},
        },
        annotations={"kai.scheduler/topology-required-placement": "rack"},
    ),
    "kube-scheduler-waits": Shown(
        words="A predicate of [kube-scheduler](../kube-scheduler.md) that no node passes: the pod wants to be where a "
        "database runs,\nand there is none. It is not submitted, and says why.",
        hook={"name": "kube-scheduler"},
        spec={"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_NEAR]}}},
    ),
    "kube-scheduler-scores": Shown(
        words="Scores of [kube-scheduler](../kube-scheduler.md)'s priorities: the pod prefers some nodes, which are "
        "offered to Slurm first.",
        hook={"name": "kube-scheduler", "options": {"first_tier": 2}},
        spec={"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": _BETTER}}},
    ),
    "vela-waits": Shown(
        words="[Vela](../vela.md) samples, and no node that was drawn can take the pod: it asks for a label that none "
        "has.",
        hook={"name": "vela"},
        spec={"nodeSelector": {"disk": "ssd"}},
    ),
    "vela-candidates": Shown(
        words="[Vela](../vela.md) samples a fifth of the nodes in turn; the best of them are tried in Slurm one after "
        "the other.",
        hook={"name": "vela", "options": {"strategy": "round-robin", "nodes_bp": 2000}},
        spec={},
    ),
}

INDEX = """# The examples, explained

What `slurm-bridge explain FILE` says of each folder of [examples/](../../examples/README.md), with the configuration
that `deploy/` ships, against a cluster of 20 nodes like the one of `make e2e`. How to read it is in
[explain.md](../explain.md). `make docs` writes these pages with the code that the command runs, and a test compares.

| example | what it shows |
|---|---|
"""

ALSO = """
Pods of the families of hooks: one that waits for each, and one that shows how nodes are chosen. These pages say what
operators see (`--verbose`).

| page | what it shows |
|---|---|
"""


def pages() -> Mapping[str, str]:
    """Every page by its name in docs/explained/."""
    found = (path for path in EXAMPLES.iterdir() if path.name not in work.APART)
    folders = sorted(path for path in found if any(path.glob("*.yaml")))
    rows = "".join(f"| [{folder.name}]({folder.name}.md) | {_first(folder)} |\n" for folder in folders)
    also = "".join(f"| [{name}]({name}.md) | {_plain(shown.words)} |\n" for name, shown in FAMILIES.items())
    with pocket.world(nodes=NODES) as world, tempfile.TemporaryDirectory() as config:
        path = pathlib.Path(config) / "config.yaml"
        path.write_text(work.configuration(PROJECT), encoding="utf-8")
        return {
            "README.md": f"{INDEX}{rows}{ALSO}{also}",
            **{f"{folder.name}.md": _page(folder, path, world) for folder in folders},
            **{f"{name}.md": _family_page(name, shown, path, world) for name, shown in FAMILIES.items()},
        }


def _page(folder: pathlib.Path, config: pathlib.Path, world: pocket.PocketWorld) -> str:
    said = "\n\n".join(_explained(folder, config, world))
    (manifest,) = folder.glob("*.yaml")
    command = f"$ slurm-bridge explain {manifest.relative_to(PROJECT)} --config config.yaml"
    lines = "\n".join(_shown(folder))
    return f"# {folder.name}\n\n{lines}\n\n```\n{command}\n{said}\n```\n"


def _family_page(name: str, shown: Shown, config: pathlib.Path, world: pocket.PocketWorld) -> str:
    configured = yaml.safe_dump({"hooks": [shown.hook]}, sort_keys=False)
    manifest = yaml.safe_dump(shown.manifest, sort_keys=False)
    settings = _settings(config, world, [shown.hook])
    with app.explainer(settings, offline=False, clock=VirtualClock()) as explainer:
        said = "\n\n".join(text.render(one, verbose=True) for one in explainer.manifests([shown.manifest]))
    parts = (
        f"# {name}",
        shown.words,
        f"```yaml\n# config.yaml\n{configured}```",
        f"```yaml\n# pod.yaml\n{manifest}```",
        f"```\n$ slurm-bridge explain pod.yaml --config config.yaml --verbose\n{said}\n```",
    )
    return "\n\n".join(parts) + "\n"


def _settings(config: pathlib.Path, world: pocket.PocketWorld, hooks: Sequence[Mapping[str, object]]) -> Settings:
    chosen = (f"hooks={json.dumps(hooks)}",) if hooks else ()
    return loader.load(config, {}, (*world.overrides, *chosen))


def _plain(words: str) -> str:
    """As a sentence in a table: links stay, lines are joined."""
    return " ".join(words.split()).removesuffix(".")


def _explained(folder: pathlib.Path, config: pathlib.Path, world: pocket.PocketWorld) -> Iterator[str]:
    settings = _settings(config, world, HOOKS.get(folder.name, ()))
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
