"""Helm values of the other bridge as a configuration of this one."""

import pathlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge import errors
from slurm_bridge.settings import keys, loader
from slurm_bridge.takeover import helm

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
TREES = st.recursive(
    SCALARS, lambda inner: st.dictionaries(st.text(max_size=10), inner) | st.lists(inner), max_leaves=8
)


def test_no_values_give_the_defaults_of_the_chart(tmp_path: pathlib.Path) -> None:
    """The result is a configuration that loads."""
    file = tmp_path / "config.yaml"
    file.write_text(helm.translate("{}", "one").text)
    settings = loader.load(file, {})
    assert (settings.profile, settings.cluster_id) == ("slinky", "one")
    assert settings.slurm.url == "http://slurm-restapi.slurm:6820"
    assert (settings.defaults.partition, settings.defaults.mcs_label) == ("slurm-bridge", "kubernetes")
    assert (settings.defaults.exclusive, settings.defaults.count) == (True, "limits")


def test_known_values_become_keys(tmp_path: pathlib.Path) -> None:
    """Each by the row of the table."""
    values = {
        "schedulerConfig": {"schedulerName": "theirs", "partition": "", "mcsLabel": ""},
        "sharedConfig": {"slurmRestApi": "https://rest.example:6820"},
        "scheduler": {"verbosity": 4},
    }
    made = helm.translate(yaml.safe_dump(values), "one")
    file = tmp_path / "config.yaml"
    file.write_text(made.text)
    settings = loader.load(file, {})
    assert made.warnings == ()
    assert settings.scheduler_names == ("theirs",)
    assert (settings.defaults.partition, settings.defaults.mcs_label) == (None, "")
    assert (settings.slurm.url, settings.slurm.plain_http) == ("https://rest.example:6820", False)
    assert settings.log.verbosity == 4


def test_values_without_a_key_are_named_with_what_to_do() -> None:
    """As comments of the file and as warnings, each row once."""
    made = helm.translate("{admission: {enabled: true, replicas: 2}, typo: {x: 1}}", "one")
    assert [line.partition(":")[0] for line in made.warnings] == [
        "admission.*",
        "typo.x",
        "slurm.url",
    ]
    assert "# typo.x: no value of the chart that this version knows" in made.text


SELECTOR = """
admission:
  managedNamespaces: [ignored]
  managedNamespaceSelector:
    matchLabels: {slurm: "yes"}
    matchExpressions:
    - {key: tier, operator: In, values: [a, b]}
    - {key: example.com/old, operator: DoesNotExist}
"""


def test_managed_namespaces_are_managed_here(tmp_path: pathlib.Path) -> None:
    """By name, or by a selector, which the chart prefers."""
    file = tmp_path / "config.yaml"
    file.write_text(helm.translate("{admission: {managedNamespaces: [a, b]}}", "one").text)
    assert loader.load(file, {}).managed_namespaces == ("a", "b")
    file.write_text(helm.translate(SELECTOR, "one").text)
    settings = loader.load(file, {})
    assert settings.managed_namespaces == ()
    assert settings.managed_namespace_selector == "slurm=yes,tier in (a,b),!example.com/old"


@pytest.mark.parametrize(
    "selector", ["{matchLabels: {a: 'b,c'}}", "{matchExpressions: [{key: a}]}", "{x: 1}", "7", "[a]"]
)
def test_a_selector_that_is_none_is_named(selector: str) -> None:
    """And not used."""
    made = helm.translate(f"{{admission: {{managedNamespaceSelector: {selector}}}}}", "one")
    assert "managed_namespace_selector" not in made.text
    assert any(line.startswith("admission.managedNamespaceSelector: ") for line in made.warnings)


def test_a_password_in_the_url_is_not_repeated() -> None:
    """A token has no place in this file."""
    made = helm.translate("{sharedConfig: {slurmRestApi: 'http://me:hunter2@rest:6820'}}", "one")
    assert "hunter2" not in made.text
    assert any("holds a user or a password" in line for line in made.warnings)


@pytest.mark.parametrize("text", ["[1]", "x", "a: [", "&a [*a]"])
def test_what_are_no_values_is_refused(text: str) -> None:
    """With the reason."""
    with pytest.raises(errors.BadConfiguration, match="the values"):
        helm.translate(text, "one")


@pytest.mark.security("input")
@given(TREES)
def test_any_tree_of_values_gives_yaml(tree: object) -> None:
    """Odd keys and values stay comments or quoted texts."""
    try:
        made = helm.translate(yaml.safe_dump(tree), "one")
    except errors.BadConfiguration:
        return
    assert yaml.safe_load(made.text)["cluster_id"] == "one"


def test_every_row_names_a_key_or_what_to_do() -> None:
    """And the keys exist."""
    known = {one.name for one in keys.every()}
    for row in helm.VALUES:
        assert bool(row.key) != bool(row.instead), row
        assert not row.key or row.key in known, row
