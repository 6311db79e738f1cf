"""The board and the alerts name what exists: metrics, pages, and each other."""

import json
import pathlib
import re
from typing import Any

import pytest
import yaml

from hack import board_files, monitoring_table
from hack.monitoring_table import ALERTS, BOARD, Alert
from slurm_bridge.telemetry.metrics import Metrics

PROJECT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "deploy" / "monitoring"

#: In no panel: numbers for those who work on the bridge, and what another metric says as well.
LEFT_OUT = {
    "slurm_bridge_informer_events_total": "follows the load of the API server",
    "slurm_bridge_informer_watches_total": "each failure has a watch that is opened again",
    "slurm_bridge_live_view_bytes_total": "the live view is for people who look at it; it is off unless configured",
    "slurm_bridge_live_view_requests_total": "likewise",
    "slurm_bridge_live_view_streams_ended_total": "likewise",
    "slurm_bridge_live_viewers": "likewise",
    "slurm_bridge_pod_resizes_total": "the gauge of resized pods is shown",
    "slurm_bridge_queue_max": "the guarantee is shown",
    "slurm_bridge_submissions_pending": "the requests are shown",
}

DESCRIBED = {one.name: one for one in Metrics().described}


def rules() -> list[dict[str, Any]]:
    """As Prometheus reads them."""
    (group,) = yaml.safe_load((FOLDER / "prometheus-rules.yaml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_every_metric_that_is_named_exists() -> None:
    """A renamed metric would leave an empty panel, or an alert that never fires."""
    named = board_files.metrics(board_files.exprs(), DESCRIBED)
    own = {name for name in named if name.startswith(monitoring_table.PREFIX)}
    assert own <= DESCRIBED.keys()
    assert named - own == {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"}


def test_every_metric_is_shown_or_left_out_for_a_reason() -> None:
    """A new metric needs a panel, an alert, or a line in the table above."""
    named = board_files.metrics(board_files.exprs(), DESCRIBED)
    assert DESCRIBED.keys() - named == LEFT_OUT.keys()


@pytest.mark.parametrize("expr", board_files.exprs())
def test_labels_of_a_metric_are_those_that_it_has(expr: str) -> None:
    """Matchers with another label match nothing."""
    for name, matchers in re.findall(r"\b(slurm_bridge_[a-z_]+)\{([^}]*)\}", expr):
        metric = name if name in DESCRIBED else re.sub(r"_(bucket|sum|count)$", "", name)
        labels = set(re.findall(r"([a-z]+)[!=]~?\"", matchers)) - {"job"}
        assert labels <= set(DESCRIBED[metric].labels)


def test_every_runbook_is_a_section_of_the_page() -> None:
    """An operator who follows the link finds what to do."""
    page = (PROJECT / board_files.PAGE).read_text()
    anchors = {board_files.anchor(heading) for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
    links = [rule["annotations"]["runbook_url"] for rule in rules()]
    assert all(link.startswith(f"{board_files.PAGE}#") for link in links)
    assert {link.partition("#")[2] for link in links} <= anchors
    assert len(set(links)) == len(links) == len(ALERTS)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda one: one.name)
def test_an_alert_says_what_it_is_what_it_means_and_what_to_do(alert: Alert) -> None:
    """In sentences; only the summary has values in it, and only of labels that its expression keeps."""
    assert alert.severity in {"critical", "warning", "info"}
    assert alert.meaning.endswith(".")
    assert alert.action.endswith(".")
    assert "{{" not in alert.meaning + alert.action
    labels = set(re.findall(r"\$labels\.([a-z]+)", alert.summary))
    kept = set(re.findall(r"[a-z]+", " ".join(re.findall(r"by \(([^)]*)\)", alert.value))))
    assert labels <= kept


def test_the_object_of_the_operator_has_the_same_rules() -> None:
    """Both are made of one table."""
    made = yaml.safe_load((FOLDER / "prometheusrule.yaml").read_text())
    assert made["spec"] == yaml.safe_load((FOLDER / "prometheus-rules.yaml").read_text())


def test_the_config_map_has_the_board() -> None:
    """Under the label that Grafana's sidecar looks for."""
    made = yaml.safe_load((FOLDER / "dashboard.yaml").read_text())
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    board = json.loads((FOLDER / "dashboard.json").read_text())
    assert {name: json.loads(text) for name, text in made["data"].items()} == {"slurm-bridge.json": board}


def test_every_panel_has_a_place_of_its_own_and_an_explanation() -> None:
    """Panels that overlap are moved by Grafana, to where the row is not theirs."""
    panels = board_files.dashboard()["panels"]
    assert len({one["id"] for one in panels}) == len(panels) == len(BOARD) + sum(len(row.panels) for row in BOARD)
    cells = [
        (one["gridPos"]["x"] + across, one["gridPos"]["y"] + down)
        for one in panels
        for across in range(one["gridPos"]["w"])
        for down in range(one["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(across for across, _ in cells) < 24
    assert all(one.get("description") and one["targets"] for one in panels if one["type"] != "row")
