"""The tables of the documentation that are made from rows of the program: annotations, decisions, metrics, settings."""

import pathlib
import tempfile
from collections.abc import Iterable

import yaml

from slurm_bridge import app
from slurm_bridge.admission.environment import VARIABLES
from slurm_bridge.checks import table
from slurm_bridge.scheduler import decide
from slurm_bridge.scheduler import lifecycle as lifecycles
from slurm_bridge.scheduler.decide import Action, DecisionRow, DecisionTable, PlaceholderFact, Pods
from slurm_bridge.scheduler.lifecycle import CellOutcome, PodCase
from slurm_bridge.settings import keys
from slurm_bridge.takeover.helm import VALUES
from slurm_bridge.telemetry.agents import AgentMetrics
from slurm_bridge.telemetry.instruments import Instruments
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.translate.annotations import ANNOTATIONS
from slurm_bridge.workloads.kind_table import KINDS

PROJECT = pathlib.Path(__file__).resolve().parents[1]


def annotations() -> str:
    """One row for each annotation, for docs/annotations.md."""
    rows = []
    for row in sorted(ANNOTATIONS, key=lambda row: (row.hint, row.key)):
        becomes = row.becomes if row.hint else f"`{row.field}`"
        note = f"{row.note} (policy)" if row.guarded else row.note
        cells = (f"`{row.key}`", row.form.words, becomes, f"`{row.example}`", note)
        rows.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(["| key | allowed values | becomes | example | note |", "|---|---|---|---|---|", *rows]) + "\n"


def environment() -> str:
    """One row for each variable, for docs/annotations.md."""
    rows = []
    for one in VARIABLES:
        asked = "`torch`" if one.torch else "`true`, `torch`"
        source = f"the value {one.source}" if one.fixed else f"`{one.source}`"
        rows.append(f"| `{one.name}` | {source} | {asked} | {one.note} |")
    return "\n".join(["| variable | from | with | is |", "|---|---|---|---|", *rows]) + "\n"


def policies() -> str:
    """The admission policies for the shipped configuration."""
    config = yaml.safe_load((PROJECT / "deploy" / "config.yaml").read_text())["data"]["config.yaml"]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.yaml"
        path.write_text(config)
        shipped = app.Configuration(path=path, environ={}, overrides=()).load()
    return f"{_POLICIES}{app.admission_policies(shipped)}"


_POLICIES = """\
# The output of `slurm-bridge admission-policies` for the configuration in deploy/config.yaml. If your scheduler_names,
# hooks, managed namespaces or accounts differ, apply the output of the command. See docs/admission-policies.md.
"""


def states() -> str:
    """The states of the pods and of the job, for docs/decisions-table.md."""
    pods = [f"| pods | `{one.name}` | {one.value} |" for one in Pods]
    jobs = [f"| job | `{one.name}` | {one.value} |" for one in PlaceholderFact]
    return "\n".join(["| of | state | meaning |", "|---|---|---|", *pods, *jobs]) + "\n"


def decisions() -> str:
    """One table for the rows before the view, and one for each view."""
    parts = [_decisions("Before the view", decide.FIRST)]
    parts += [_decisions(f"`{view.name}`: {view.value}", decide.ROWS[view]) for view in DecisionTable]
    return "\n".join(parts)


def lifecycle() -> str:
    """What follows for each state of a job and of its pod, and what each outcome is."""
    heads = " | ".join(one.value for one in PodCase)
    lines = [f"| job | {heads} |", "|---" * (len(PodCase) + 1) + "|"]
    for row in lifecycles.ROWS:
        title = f"`{row.title}`" if row.words else row.title
        remark = f" ({row.remark})" if row.remark else ""
        lines.append("| " + " | ".join([title + remark, *(row.cells[one].short for one in PodCase)]) + " |")
    said = [f"| {one.short} | {one.sentence} |" for one in CellOutcome if one is not CellOutcome.NEVER]
    return "\n".join([*lines, "", "| outcome | what happens |", "|---|---|", *said]) + "\n"


def actions() -> str:
    """What each action is."""
    lines = [f"| `{one.name}` | {one.value} |" for one in Action]
    return "\n".join(["| action | what the scheduler does |", "|---|---|", *lines]) + "\n"


def metrics() -> str:
    """The metrics of the daemon, for docs/metrics.md."""
    return _metrics(Metrics())


def agent_metrics() -> str:
    """The metrics of an agent, for docs/agents.md."""
    return _metrics(AgentMetrics())


def settings() -> str:
    """Every key, by group, for docs/configuration.md."""
    rows = [
        f"| `{key.name}` | {key.type} | {key.default} | {'yes' if key.reloadable else ''} | {_cell(key.meaning)} |"
        for key in keys.every()
    ]
    return "\n".join(["| key | type | default | reloaded | meaning |", "|---|---|---|---|---|", *rows]) + "\n"


def helm() -> str:
    """Every value of the other bridge's chart, for docs/migrating.md."""
    rows = []
    for row in VALUES:
        default = f"`{row.default}`" if row.default is not None else ""
        here = f"`{row.key}`" if row.key else row.instead
        rows.append(f"| `{row.value}` | {default} | {_cell(here)} |")
    return "\n".join(["| value | default | here |", "|---|---|---|", *rows]) + "\n"


def checks() -> str:
    """Every assumption with its reason and remedy, for docs/operating.md."""
    rows = [f"| {check.name} | {_cell(check.why)} | {_cell(check.fix)} |" for check in table.CHECKS]
    return "\n".join(["| check | why | fix |", "|---|---|---|", *rows]) + "\n"


def kinds() -> str:
    """Which pods are of a kind of workload, and what one workload of it is, for docs/workloads.md."""
    rows = [
        f"| {page.title} | {page.pods} | {page.one} | {page.minimum}{' ' if page.minimum else ''}|"
        for page in (spec.page for spec in KINDS)
    ]
    return "\n".join(["| kind | which pods | one workload is | starts from |", "|---|---|---|---|", *rows]) + "\n"


def sources() -> str:
    """Whose annotations count for a workload of a kind, the weakest first."""
    rows = [f"| {spec.page.title} | {spec.page.sources} |" for spec in KINDS]
    return "\n".join(["| workload | annotations of |", "|---|---|", *rows]) + "\n"


def _decisions(title: str, found: Iterable[DecisionRow]) -> str:
    lines = [f"| {number} | {row.says} | `{row.action.name}` |" for number, row in enumerate(found, 1)]
    return "\n".join([f"### {title}", "", "| | when | action |", "|---|---|---|", *lines]) + "\n"


def _metrics(of: Instruments) -> str:
    """One row for each metric: name, type, labels, meaning."""
    rows = [
        f"| `{row.name}` | {row.type} | {' '.join(f'`{label}`' for label in row.labels)} | {row.meaning} |"
        for row in sorted(of.described, key=lambda row: row.name)
    ]
    return "\n".join(["| metric | type | labels | meaning |", "|---|---|---|---|", *rows]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
