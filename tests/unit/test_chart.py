"""The Helm chart as far as it shows without helm: it follows deploy/, and what no longer fits is found."""

import json
import pathlib

import pytest
import yaml

import slurm_bridge
from hack import chart_templates, chart_values

DEPLOY = chart_templates.DEPLOY
CHART = chart_templates.CHART

#: Kustomizations are for kustomize, the configuration is a value, policies depend on it, and rules are no object.
NO_TEMPLATES = {"config.yaml", "admission/policies.yaml", "monitoring/prometheus-rules.yaml"}


def test_every_manifest_has_a_template() -> None:
    """A new file of deploy/ is part of the chart, too."""
    found = {str(file.relative_to(DEPLOY)) for file in DEPLOY.rglob("*.yaml") if CHART not in file.parents}
    manifests = {name for name in found if not name.endswith("kustomization.yaml")}
    # submission/deployment.yaml is a patch of deployment.yaml, where the template has it as conditions.
    wanted = manifests - NO_TEMPLATES - {"submission/deployment.yaml"}
    assert {one.source for one in chart_templates.TEMPLATES} == wanted


def test_every_template_has_a_manifest() -> None:
    """A template that is made of no file is one of the few that are written by hand."""
    made = {file for file, _ in chart_templates.files()}
    found = {file for file in (CHART / "templates").rglob("*") if file.is_file()}
    assert {file.name for file in found - made} == {"NOTES.txt", "_helpers.tpl", "certificates.yaml", "config.yaml"}


def test_every_hunk_belongs_to_a_template() -> None:
    """A file that no template reads changes nothing."""
    sources = {pathlib.PurePath(one.source).with_suffix("") for one in chart_templates.TEMPLATES}
    hunks = {file.relative_to(chart_templates.HUNKS).with_suffix("") for file in chart_templates.HUNKS.rglob("*.*")}
    assert hunks <= sources


def test_a_hunk_replaces_its_lines_wherever_they_are() -> None:
    """Whole lines alone: the beginning of a line is none."""
    hunk = "@@\n a: 1\n-b: 2\n+b: {{ .Values.b }}\n"
    assert chart_templates.changed("a: 1\nb: 2\na: 1\nb: 2\n", hunk, "x.yaml").count(".Values.b") == 2


@pytest.mark.parametrize("text", ["a: 1\nb: 3\n", "", "xa: 1\nb: 2\n"])
def test_a_hunk_that_applies_nowhere_is_an_error(text: str) -> None:
    """It names the file and the lines that it looks for."""
    with pytest.raises(ValueError, match=r"deploy/x\.yaml has no such lines .*:\na: 1\nb: 2"):
        chart_templates.changed(text, "@@\n a: 1\n-b: 2\n+b: 4\n", "x.yaml")


def test_the_chart_has_the_version_of_the_program() -> None:
    """It installs this program and no other one."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == slurm_bridge.__version__


def test_every_value_has_its_default_in_the_schema() -> None:
    """values.yaml and the schema are made of the same rows."""
    values, schema = yaml.safe_load(chart_values.document()), json.loads(chart_values.schema())
    for row in chart_values.VALUES:
        value, part = values, schema
        for key in row.path.split("."):
            value, part = value[key], part["properties"][key]
        assert row.default is None or value == row.default == part["default"]


def test_the_default_configuration_is_the_shipped_one() -> None:
    """But for the Lease, which is named after the release."""
    shipped = yaml.safe_load(yaml.safe_load((DEPLOY / "config.yaml").read_text())["data"]["config.yaml"])
    del shipped["leader_election"]
    assert yaml.safe_load(chart_values.document())["config"] == shipped


def test_no_template_names_the_namespace_of_kustomize() -> None:
    """Objects of a release are in its namespace; the rest of a template are comments."""
    for file, text in chart_templates.files():
        lines = [
            line for line in text.splitlines() if "slurm-bridge-system" in line and not line.lstrip().startswith("#")
        ]
        assert lines == [], file
