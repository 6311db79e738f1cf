"""The board and the alerts of hack/monitoring_table.py as files: for Grafana, Prometheus, its operator, and people."""

import json
import pathlib
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

import monitoring_table
from monitoring_table import ALERTS, BOARD, Alert, BoardRow, Panel

Json = dict[str, Any]

FOLDER: Final = pathlib.Path(__file__).resolve().parents[1] / "deploy" / "monitoring"
PAGE: Final = "docs/monitoring.md"

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
#: Grafana's grid has so many columns; a panel is so many units high.
_COLUMNS, _HEIGHT, _STAT_HEIGHT = 24, 8, 4
_LINK: Final = re.compile(r"\[([^]]+)\]\([^)]*\)")
_NAME: Final = re.compile(rf"\b(?:{monitoring_table.PREFIX}|process_)[a-z0-9_]+")
_PARTS: Final = re.compile(r"_(?:bucket|sum|count)$")


def files() -> Mapping[pathlib.Path, str]:
    """Every file of deploy/monitoring that is made of the table."""
    board = json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"
    return {
        FOLDER / "dashboard.json": board,
        FOLDER / "dashboard.yaml": f"{_CONFIG_MAP}{textwrap.indent(board, '    ')}",
        FOLDER / "prometheus-rules.yaml": f"{_RULES_HEAD}{_yaml({'groups': _groups()})}",
        FOLDER / "prometheusrule.yaml": f"{_OBJECT_HEAD}{textwrap.indent(_yaml({'groups': _groups()}), '  ')}",
    }


def metrics(exprs: Iterable[str], described: Iterable[str]) -> set[str]:
    """The metrics that expressions name; a part of a histogram is the histogram."""
    known, found = set(described), set()
    for expr in exprs:
        for name in _NAME.findall(expr):
            found.add(name if name in known else _PARTS.sub("", name))
    return found


def exprs() -> tuple[str, ...]:
    """Every expression of the board and of the rules."""
    panels = (query.expr for row in BOARD for panel in row.panels for query in panel.queries)
    return (*panels, *(alert.expr for alert in ALERTS))


def anchor(heading: str) -> str:
    """The anchor of a heading in a page."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


# -- Grafana -----------------------------------------------------------------------------------------------------------


def dashboard() -> Json:
    """The board as Grafana imports it."""
    return {
        "title": "slurm-bridge",
        "uid": "slurm-bridge",
        "description": "Slurm schedules Kubernetes workloads: throughput, latency, queue, servers, hooks.",
        "tags": ["slurm-bridge"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "annotations": {"list": [_leader_changes()]},
        "templating": {"list": _variables()},
        "links": [],
        "panels": _placed(),
    }


def _variables() -> list[Json]:
    jobs = "label_values(slurm_bridge_leader, job)"
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0},
        {
            "name": "job",
            "label": "Installation",
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": jobs, "refId": "jobs"},
            "definition": jobs,
            "refresh": 2,
            "includeAll": True,
            "allValue": ".+",
            "current": {"text": "All", "value": "$__all"},
            "hide": 0,
        },
    ]


def _leader_changes() -> Json:
    return {
        "name": "New leader",
        "datasource": _SOURCE,
        "enable": True,
        "expr": 'changes(slurm_bridge_leader{job=~"$job"}[2m]) > 0 and slurm_bridge_leader{job=~"$job"} == 1',
        "iconColor": "orange",
        "titleFormat": "{{instance}} leads",
    }


def _placed() -> list[Json]:
    """Panels in the grid: one line after the other, and a heading above each group."""
    found: list[Json] = []
    top = 0
    for row in BOARD:
        found.append(_heading(row, len(found) + 1, top))
        top, left, height = top + 1, 0, _HEIGHT
        for panel in row.panels:
            height = _STAT_HEIGHT if panel.kind == "stat" else _HEIGHT
            if left + panel.width > _COLUMNS:
                top, left = top + height, 0
            found.append(_panel(panel, len(found) + 1, {"x": left, "y": top, "w": panel.width, "h": height}))
            left += panel.width
        top += height
    return found


def _heading(row: BoardRow, number: int, top: int) -> Json:
    grid = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
    return {"id": number, "type": "row", "title": row.title, "gridPos": grid, "collapsed": False, "panels": []}


def _panel(panel: Panel, number: int, grid: Mapping[str, int]) -> Json:
    table = panel.kind == "table"
    targets = [
        {
            "refId": chr(ord("A") + place),
            "datasource": _SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend,
            "range": not table,
            "instant": table,
            **({"format": "table"} if table else {}),
        }
        for place, query in enumerate(panel.queries)
    ]
    found = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": _LINK.sub(r"\1", panel.meaning),
        "datasource": _SOURCE,
        "gridPos": dict(grid),
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": _custom(panel)}, "overrides": []},
        "options": _options(panel),
    }
    if table:
        hidden = {
            "id": "organize",
            "options": {"excludeByName": {"Time": True}, "renameByName": {"Value": "workloads"}},
        }
        found["transformations"] = [hidden]
    return found


def _custom(panel: Panel) -> Json:
    if panel.kind != "timeseries":
        return {}
    stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
    return {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 40 if panel.stacked else 0,
        "showPoints": "never",
        "stacking": stacking,
    }


def _options(panel: Panel) -> Json:
    if panel.kind == "timeseries":
        legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    if panel.kind == "stat":
        reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
        return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "area", "textMode": "auto"}
    return {"showHeader": True, "sortBy": [{"displayName": "workloads", "desc": True}]}


# -- Prometheus --------------------------------------------------------------------------------------------------------


def _groups() -> list[Json]:
    return [{"name": "slurm-bridge", "rules": [_rule(alert) for alert in ALERTS]}]


def _rule(alert: Alert) -> Json:
    found: Json = {"alert": alert.name, "expr": alert.expr}
    if alert.minutes:
        found["for"] = f"{alert.minutes}m"
    found["labels"] = {"severity": alert.severity}
    found["annotations"] = {
        "summary": alert.summary,
        "description": _LINK.sub(r"\1", alert.meaning),
        "runbook_url": f"{PAGE}#{anchor(alert.name)}",
    }
    return found


def _yaml(value: Any) -> str:
    # Lines stay whole, so that each runbook is one text to be replaced.
    text: str = yaml.safe_dump(value, sort_keys=False, width=10_000, allow_unicode=True)
    return text


_CONFIG_MAP: Final = """\
# The board for Grafana, for a sidecar that looks for the label grafana_dashboard. Made by `make docs`.
apiVersion: v1
kind: ConfigMap
metadata:
  name: slurm-bridge-dashboard
  namespace: slurm-bridge-system
  labels:
    app.kubernetes.io/name: slurm-bridge
    grafana_dashboard: "1"
data:
  slurm-bridge.json: |
"""
_RULES_HEAD: Final = """\
# The alerts as a file for `rule_files` of Prometheus. Made by `make docs`.
"""
_OBJECT_HEAD: Final = """\
# The alerts, for the Prometheus operator. It needs the operator's CRDs. Made by `make docs`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: slurm-bridge
  namespace: slurm-bridge-system
  labels:
    app.kubernetes.io/name: slurm-bridge
spec:
"""

# -- docs/monitoring.md ------------------------------------------------------------------------------------------------


def panels() -> str:
    """A table for each row of the board."""
    return "\n".join(_row(row) for row in BOARD)


def _row(row: BoardRow) -> str:
    lines = [f"| {panel.title} | {panel.meaning} |" for panel in row.panels]
    return "\n".join([f"### {row.title}", "", "| panel | what it tells |", "|---|---|", *lines]) + "\n"


def alerts() -> str:
    """A section for each alert."""
    return "\n".join(_alert(alert) for alert in ALERTS)


def _alert(alert: Alert) -> str:
    lasts = f"for {alert.minutes} min" if alert.minutes else "at once"
    paragraphs = (f"*{alert.severity}, {lasts}.* {alert.meaning}", f"What to do: {alert.action}")
    filled = (textwrap.fill(text, 125, break_long_words=False, break_on_hyphens=False) for text in paragraphs)
    expr = f"```promql\n{alert.expr}\n```"
    return "\n\n".join([f"### {alert.name}", *filled, expr]) + "\n"
