"""A kind of workload is one row: a test names each thing that was forgotten, and the file that lacks it."""

import importlib
import itertools
import pathlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import yaml

from slurm_bridge.demo import work
from slurm_bridge.model import names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.workload import Root
from slurm_bridge.workloads import kind_table, kinds
from slurm_bridge.workloads.kind_table import KINDS

ROOT = pathlib.Path(__file__).resolve().parents[3]
RBAC = ROOT / "deploy" / "rbac.yaml"


def test_every_module_of_kinds_is_in_the_table() -> None:
    """A row that is not listed is found by no pod."""
    forgotten = [
        f"workloads/kinds/{found.name}.py: its SPEC is not in KINDS of workloads/kind_table.py"
        for found in pkgutil.iter_modules(kinds.__path__)
        if importlib.import_module(f"{kinds.__name__}.{found.name}").SPEC not in KINDS
    ]
    assert not forgotten, "\n".join(forgotten)


def test_the_last_kind_claims_every_pod() -> None:
    """Behind it no kind would ever be asked."""
    assert KINDS[-1].name == "Pod"


def test_no_two_kinds_have_the_same_object() -> None:
    """Group and kind lead to one row."""
    found = [spec.resource for spec in KINDS if spec.resource is not None]
    assert len({(one.group, one.kind) for one in found}) == len(found)


def test_every_row_is_complete() -> None:
    """What `explain` and the cache of annotations take from a row, a row with an object has."""
    forgotten = list(_gaps())
    assert not forgotten, "\n".join(forgotten)


def _gaps() -> Iterator[str]:
    for kind, spec in kind_table.SPECS.items():
        if spec.name != kind.kind:
            yield f"kind {spec.name} has an object of another name: {kind.kind}"
        if not spec.counted:
            yield f"kind {spec.name} does not name the field that says how many pods it has (KindSpec.counted)"
        if not spec.prefixes:
            yield f"kind {spec.name} names no prefix of annotations that are kept (KindSpec.prefixes)"
        if not spec.owner and (spec.suspended(_Suspended()) or spec.deadline(_Suspended()) is not None):
            yield f"kind {spec.name} reads suspension or deadline and is no owner: nothing asks it (KindSpec.owner)"
        for companion in spec.companions:
            if companion.index not in spec.indexes.get(kind, {}):
                yield f"kind {spec.name} has no index {companion.index!r} of its objects (KindSpec.indexes)"


class _Suspended:
    """Has every field, and the field is true."""

    def __getattr__(self, _name: str) -> "_Suspended":
        return self

    def __bool__(self) -> bool:
        return True


def test_the_daemon_has_the_rights_that_each_kind_needs() -> None:
    """A missing right keeps every pod of the kind waiting for ever."""
    granted = {
        right
        for document in yaml.safe_load_all(RBAC.read_text())
        for rule in document.get("rules", ())
        for right in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }
    missing = [
        f"kind {kind.kind} of {kind.group or 'core'} has no RBAC rule for {verb} of {resource} in deploy/rbac.yaml"
        for kind, resource, verb in _rights()
        if (kind.group, resource, verb) not in granted
    ]
    assert not missing, "\n".join(missing)


def _rights() -> Iterator[tuple[Kind[Any], str, str]]:
    for kind in kind_table.WATCHED:
        yield from ((kind, kind.plural, verb) for verb in ("list", "watch"))
    for kind, spec in kind_table.SPECS.items():
        if spec.owner or spec.announcement is not None:
            yield kind, kind.plural, "get"
        if spec.announcement is not None:
            yield kind, f"{kind.plural}/status", "patch"


def test_each_kind_has_an_example() -> None:
    """A user copies before reading."""
    manifests = [
        one
        for file in sorted((ROOT / "examples").rglob("*.yaml"))
        for one in yaml.safe_load_all(file.read_text())
        if one and "kind" in one
    ]
    shown = {(one["apiVersion"].rpartition("/")[0], one["kind"]) for one in manifests}
    missing = [
        f"kind {kind.kind} of {kind.group} has no example: no manifest in examples/ is one"
        for kind in kind_table.SPECS
        if (kind.group, kind.kind) not in shown
    ]
    assert not missing, "\n".join(missing)
    assert any(names.GROUP in str(one) for one in manifests)


def test_each_example_is_listed() -> None:
    """On the page of the examples, and with what Slurm has to show for it on real servers."""
    listed, expected = (
        (ROOT / file).read_text(encoding="utf-8") for file in ("examples/README.md", "tests/e2e/test_examples.py")
    )
    folders = sorted(path.parent.name for path in (ROOT / "examples").glob("*/README.md"))
    missing = [
        f"examples/README.md does not link to {name}" for name in folders if f"]({name}/README.md)" not in listed
    ]
    missing += [
        f"tests/e2e/test_examples.py does not name {name}"
        for name in folders
        if name not in work.APART and f'"{name}"' not in expected
    ]
    assert not missing, "\n".join(missing)


def test_each_kind_has_tests() -> None:
    """A test of this folder says what its pods become."""
    here = pathlib.Path(__file__)
    tests = " ".join(file.read_text(encoding="utf-8") for file in here.parent.glob("test_*.py") if file != here)
    missing = [
        f"kind {spec.name}: no other test in tests/unit/workloads/ names it"
        for spec in KINDS
        if not re.search(rf"\b{spec.name}\b", tests)
    ]
    assert not missing, "\n".join(missing)


def test_a_part_is_called_as_its_kind_calls_it() -> None:
    """The uid of the root tells which part it is."""
    uids = {"JobSet": "u:0:driver", "LeaderWorkerSet": "u:3:leader", "PodGroup": "u", "Job": "u"}
    called = [kind_table.called(Root(kind=kind, namespace="ns", name="x", uid=uid)) for kind, uid in uids.items()]
    assert called == ["JobSet ns/x, driver", "LeaderWorkerSet ns/x, group 3 leader", "PodGroup ns/x", "Job ns/x"]
