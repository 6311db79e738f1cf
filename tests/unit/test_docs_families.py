"""The pages of the families explain all that their code says to people, and name all that can be configured."""

import ast
import importlib
import inspect
import pathlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from slurm_bridge.families.kube_scheduler import filters
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.predicates import own, reasons, standard
from slurm_bridge.families.kube_scheduler.priorities import table
from slurm_bridge.families.kube_scheduler.priorities.table import ALIASES, PRIORITIES
from slurm_bridge.families.vela import catalogue, decision, hook, office, sample_order, strategies
from slurm_bridge.hooks import registry, session
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.eviction import cases
from tests.unit.families.kube_scheduler import scenes
from tests.unit.hooks import builders
from tests.unit.hooks.builders import Around, pod, translated, workload

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
FAMILIES = "slurm_bridge.families"

#: The page on which what a module says to people is explained.
SPEAKERS: Mapping[str, str] = {
    "slurm_bridge.hooks.usable_nodes": "hooks.md",
    "slurm_bridge.hooks.component_nodes": "hooks.md",
    "slurm_bridge.hooks.explain": "hooks.md",
    "slurm_bridge.cluster.rules.volumes": "hooks.md",
    f"{FAMILIES}.eligibility": "hooks.md",
    f"{FAMILIES}.policy": "hooks.md",
    f"{FAMILIES}.kube_scheduler.predicates.reasons": "kube-scheduler.md",
    f"{FAMILIES}.kube_scheduler.extenders.desk": "kube-scheduler.md",
    f"{FAMILIES}.kube_scheduler.extenders.wire": "kube-scheduler.md",
    f"{FAMILIES}.kube_scheduler.hook": "kube-scheduler.md",
    f"{FAMILIES}.kube_scheduler.allocation_check": "kube-scheduler.md",
    f"{FAMILIES}.kube_scheduler.placements": "kube-scheduler.md",
    f"{FAMILIES}.vela.agents": "vela.md",
    f"{FAMILIES}.vela.conflict": "vela.md",
    f"{FAMILIES}.vela.decision": "vela.md",
    f"{FAMILIES}.vela.hook": "vela.md",
    f"{FAMILIES}.vela.loop": "vela.md",
    f"{FAMILIES}.vela.note": "vela.md",
    f"{FAMILIES}.vela.office": "vela.md",
    f"{FAMILIES}.vela.pipeline": "vela.md",
    f"{FAMILIES}.vela.samplers": "vela.md",
    f"{FAMILIES}.kai.wishes": "kai.md",
    f"{FAMILIES}.kai.hook": "kai.md",
    f"{FAMILIES}.yunikorn.hook": "yunikorn.md",
    f"{FAMILIES}.yunikorn.reasons": "yunikorn.md",
    f"{FAMILIES}.yunikorn.identities": "yunikorn.md",
    f"{FAMILIES}.yunikorn.opt_outs": "yunikorn.md",
    f"{FAMILIES}.yunikorn.partition_check": "yunikorn.md",
    f"{FAMILIES}.yunikorn.partitions": "yunikorn.md",
    f"{FAMILIES}.yunikorn.people": "yunikorn.md",
    f"{FAMILIES}.yunikorn.queue_reasons": "yunikorn.md",
    f"{FAMILIES}.yunikorn.room_answers": "yunikorn.md",
    f"{FAMILIES}.yunikorn.queues.placement": "yunikorn.md",
    f"{FAMILIES}.yunikorn.queues.limits": "yunikorn.md",
    **{f"{FAMILIES}.vela.plugins.{name}": "vela.md" for name in ("battery", "fit", "geo", "rules")},
}

#: For the log or for whoever configures, and never on a pod.
UNSAID = {
    "nodes that agents named were dropped:",
    "predicate",
    "sampling for",
    "vela in slurm",
    "vela standing",
    "vela taints",
    "battery",
    "application ",
    "annotation",
    "standing where",
    "is no regular expression:",
    "is refused: use",
    "takes a list of names;",
    "hook policy",
    "configuration of the queues:",
    ": no workload is evicted for it, because",
    # A pod with a node waits for none: only a defect of the daemon could lead there.
    "runs on node",
    reasons.HOST_NAME,
    reasons.UNBOUND,
}


def page(name: str) -> str:
    """A page as one line: a text may be broken anywhere."""
    return " ".join((DOCS / name).read_text().split())


def sentences(module: str) -> Iterator[re.Pattern[str]]:
    """Every text of a module that has a blank in it, anything in the place of its values; no docstrings."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    elsewhere = inside | docs
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from _sentence([part.value if isinstance(part, ast.Constant) else None for part in node.values])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in elsewhere:
            yield from _sentence([node.value])


def _sentence(parts: list[Any]) -> Iterator[re.Pattern[str]]:
    """None stands for a value. What lacks words of its own says nothing."""
    words = " ".join(str(part) for part in parts if part).strip()
    if re.search(r"[a-z)'] \(?[a-z]", words) and not any(words.startswith(one) for one in UNSAID):
        yield re.compile(
            ".{1,120}?".join(re.escape(one) for one in "\0".join(p or "" for p in parts).split("\0") if one)
        )


def texts() -> list[tuple[str, str, re.Pattern[str]]]:
    """All of them, with the page for each."""
    return [(module, name, said) for module, name in SPEAKERS.items() for said in sentences(module)]


@pytest.mark.parametrize(("module", "name", "said"), texts(), ids=lambda value: getattr(value, "pattern", "")[:60])
def test_what_a_pod_can_say_is_explained(module: str, name: str, said: re.Pattern[str]) -> None:
    """Word for word, in the page of its family."""
    assert said.search(page(name)), f"docs/{name} does not have what {module} says: {said.pattern}"


#: No pod has these, wherever the hooks stand: `eligibility` does not admit it, and all hooks are asked that first.
UNREACHED = {reasons.HOST_NAME: "AlreadyBound", reasons.UNBOUND: "VolumeNotReady"}

WORDS = [text for name, text in vars(reasons).items() if name.isupper() and text not in UNREACHED]


@pytest.mark.parametrize("text", [*WORDS, cases.WHY])
def test_each_reason_of_a_predicate_has_its_own_row(text: str) -> None:
    """With what it means and what can be done."""
    row = re.search(
        rf"^\| `{re.escape(text)}` \| (.+) \| (.+) \|$", (DOCS / "kube-scheduler.md").read_text(), re.MULTILINE
    )
    assert row


class Nothing:
    """A view of no objects."""

    version = 0

    def get(self, _namespace: str, _name: str) -> None:
        """There is none."""

    def all(self) -> tuple[Object, ...]:
        """None."""
        return ()

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("text", "asking"),
    [
        (reasons.HOST_NAME, pod(node_name="elsewhere")),
        (reasons.UNBOUND, pod(volumes=({"name": "v", "persistentVolumeClaim": {"claimName": "data"}},))),
    ],
)
def test_a_reason_without_a_row_is_on_no_pod(text: str, asking: Pod) -> None:
    """Not even where `eligibility` is the last hook."""
    names = ["policy", "kube-scheduler", "eligibility"]
    chain = registry.build([registry.HookConfig(name=name) for name in names], Around().make())
    chain.see(dict.fromkeys(chain.needs, Nothing()))
    seen = builders.cluster([builders.node("a")])
    found = chain.plan(workload(asking), translated(), seen, now=0.0)
    chain.close()
    assert getattr(found, "reason", "") == UNREACHED[text]


def test_what_the_framework_says_of_a_sample_is_explained() -> None:
    """It is a part of the condition."""
    assert session.NOT_SAMPLED in page("vela.md")


@pytest.mark.parametrize("name", [*standard.PREDICATES, *PRIORITIES, *ALIASES])
def test_every_predicate_and_priority_is_named(name: str) -> None:
    """In its table."""
    assert f"`{name}" in page("kube-scheduler.md")


@pytest.mark.parametrize("name", [*catalogue.PLUGINS, *strategies.BUILTIN, *sample_order.SORTS])
def test_every_plugin_of_vela_is_named(name: str) -> None:
    """Filters, scores, strategies and sort plugins."""
    assert f"`{name}`" in page("vela.md")


def counted() -> set[str]:
    """The words by which Vela counts: what it says to `happened`, directly or by the name `what`."""
    found = {*decision.DROPPED.values()}
    for module in (hook, office):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            calls = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"happened", "_count"}
            names = isinstance(node, ast.Assign) and [getattr(one, "id", "") for one in node.targets] == ["what"]
            parts = node.args if calls and isinstance(node, ast.Call) else [node] if names else []
            inside = (one for part in parts for one in ast.walk(part))
            found |= {one.value for one in inside if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


@pytest.mark.parametrize("word", sorted(counted()))
def test_every_word_that_vela_counts_by_is_explained(word: str) -> None:
    """In the table of its metrics."""
    assert f"`{word}`" in (DOCS / "vela.md").read_text().partition("## Metrics")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", ["kai.md", "kube-scheduler.md", "vela.md", "yunikorn.md"])
def test_the_least_configuration_of_a_page_is_accepted(name: str) -> None:
    """As it stands there; every hook in it ships with the bridge."""
    configured = yaml.safe_load(blocks(name, "yaml")[0])["hooks"]
    for one in configured:
        registry.shipped(one["name"]).Options.model_validate(one.get("options", {}))  # type: ignore[attr-defined]


EVERY_OPTION = re.compile(r"\(\.\./(examples/hooks/[\w.-]+)\) has every option with a comment")


@pytest.mark.parametrize("name", ["kai.md", "kube-scheduler.md", "vela.md", "yunikorn.md"])
def test_an_example_with_every_option_has_them(name: str) -> None:
    """Where the page says so; the options are those of its table."""
    table = (DOCS / name).read_text().partition("<!-- generated: options -->")[2].partition("<!-- end -->")[0]
    options = re.findall(r"^\| `(?:[\w\[\].]*\.)?(\w+)` \|", table, re.MULTILINE)
    assert options
    for file in EVERY_OPTION.findall(page(name)):
        shown = set(re.findall(r"(\w+):", (PROJECT / file).read_text()))
        assert set(options) - shown == set(), file


@pytest.mark.parametrize("name", registry.BUILTIN)
def test_each_included_hook_has_its_places(name: str) -> None:
    """Each place is a list that a new hook has to be added to."""
    package = registry.BUILTIN[name].removeprefix(f"{FAMILIES}.").partition(":")[0].split(".")[0]
    hooks, generator = (PROJECT / "docs" / "hooks.md").read_text(), (PROJECT / "hack" / "docs.py").read_text()
    tests = PROJECT / "tests" / "unit" / "families"
    places = {
        "docs/hooks.md: no row in its first table": f"`{name}`" in "".join(re.findall(r"^\| `.*", hooks, re.MULTILINE)),
        "hack/docs.py: its options are on no page": f'docs_hooks.options("{name}"' in generator,
        "tests/unit/families/: no tests": (tests / package).is_dir() or (tests / f"test_{package}.py").exists(),
    }
    missing = [words for words, there in places.items() if not there]
    assert not missing, "\n".join(missing)


def test_the_paths_on_the_page_for_developers_exist() -> None:
    """Its steps name the files to change; NAME stands for a name that is chosen."""
    text = (DOCS / "contributing.md").read_text()
    rooms = "slurm_bridge|tests|docs|deploy|examples|hack"
    named = {one for one in re.findall(rf"`((?:{rooms})/[\w./-]*)`", text) if "NAME" not in one}
    missing = sorted(one for one in named if not (PROJECT / one).exists())
    assert len(named) > 20
    assert not missing, f"docs/contributing.md names what does not exist: {', '.join(missing)}"


def blocks(name: str, language: str) -> list[str]:
    """A page's code in this language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)


@pytest.mark.parametrize("written", blocks("kube-scheduler.md", "yaml"))
def test_the_examples_of_the_page_are_options(written: str) -> None:
    """Each is accepted as it stands."""
    configured = {one["name"]: one.get("options", {}) for one in yaml.safe_load(written)["hooks"]}
    assert KubeSchedulerOptions.model_validate(configured["kube-scheduler"])


def test_the_example_of_a_site_works() -> None:
    """Its predicate denies loud nodes, and its priority prefers those near the door."""
    scope: dict[str, Any] = {}
    exec(compile(blocks("kube-scheduler.md", "python")[0], "kube-scheduler.md", "exec"), scope)  # noqa: S102 - the page's own example
    groups = tomllib.loads(blocks("kube-scheduler.md", "toml")[0])["project"]["entry-points"]
    (written,) = (one for one in blocks("kube-scheduler.md", "yaml") if "near-the-door" in one)
    options = yaml.safe_load(written)["hooks"][0]["options"]
    (predicate,), (priority,) = (groups[group].items() for group in (own.GROUP, table.GROUP))
    nodes = [scenes.node("a", labels={"noise": "loud"}), scenes.node("b", labels={"steps": "3"})]
    seen = scenes.seen(scenes.pod(), nodes)
    assert options["predicates"][-1] == predicate[0]
    rules = {predicate[0]: scope[predicate[1].partition(":")[2]]}
    assert dict(filters.evaluate(seen, rules)) == {"a": ("node(s) are too loud",)}
    *_, wanted = options["priorities"]
    offered = {priority[0]: scope[priority[1].partition(":")[2]]}
    rated = table.configured(wanted["name"], wanted["weight"], wanted["args"], offered)
    rate: Any = rated.map
    assert [rate(seen.pod, None, one).score for one in seen.columns.facts if one is not None] == [0, 7]
