"""The rights for preemption are what it does and no more, and only whoever wants it gives them."""

import itertools
import pathlib

import yaml

from slurm_bridge.families.kube_scheduler.preemption.hook import Preemption
from slurm_bridge.hooks import needs

DEPLOY = pathlib.Path(__file__).resolve().parents[4] / "deploy"
GRANTED = DEPLOY / "preemption" / "rbac.yaml"


def rights(file: pathlib.Path) -> set[tuple[str, str, str]]:
    """Every group, resource and verb that some role in it grants."""
    rules = [rule for one in yaml.safe_load_all(file.read_text()) for rule in one.get("rules", ())]
    every = (itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in rules)
    return set(itertools.chain.from_iterable(every))


def test_the_rights_are_to_evict_and_to_see_what_the_hook_needs() -> None:
    """Budgets are read, never written."""
    kinds = {needs.KINDS[need] for need in Preemption.needs}
    seen = {(kind.group, kind.plural, verb) for kind in kinds for verb in ("list", "watch")}
    assert rights(GRANTED) == seen | {("", "pods/eviction", "create")}


def test_without_preemption_nobody_is_evicted() -> None:
    """The right is not among those that every daemon has."""
    assert not any(resource == "pods/eviction" for _, resource, _ in rights(DEPLOY / "rbac.yaml"))
