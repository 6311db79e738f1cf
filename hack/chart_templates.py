"""The templates of the Helm chart that are made of the kustomize files, with the values in the places that vary.

A template is a file of deploy/ with its comments. Names and namespaces become those of the release everywhere. What
else varies is in hack/chart/, in the form of a diff without line numbers: each hunk begins with `@@`, its lines of the
file begin with ` ` or `-`, those of the template with ` ` or `+`, and it applies wherever the file has these lines. A
hunk that applies nowhere is an error, so that a changed file is looked at. What the chart has beside the kustomize
files is written by hand.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

PROJECT: Final = pathlib.Path(__file__).resolve().parents[1]
DEPLOY: Final = PROJECT / "deploy"
CHART: Final = DEPLOY / "helm" / "slurm-bridge"
HUNKS: Final = PROJECT / "hack" / "chart"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One file of deploy/, and when its objects are part of a release."""

    source: str
    when: str = ""


def _hook(name: str) -> str:
    return f'has "{name}" (include "slurm-bridge.hooks" . | fromJsonArray)'


_SERVED = 'include "slurm-bridge.served" .'
_WEBHOOK, _AGENTS, _POLICIES, _MONITOR, _BUDGET, _NETWORK = (
    f".Values.{value}"
    for value in (
        "webhook.enabled",
        "agents.shards",
        "admissionPolicies.enabled",
        "serviceMonitor.enabled",
        "podDisruptionBudget.enabled",
        "networkPolicy.enabled",
    )
)
_RULES, _DASHBOARD = ".Values.monitoring.rules", ".Values.monitoring.dashboard"

#: Every file of deploy/ that objects of a release come from.
TEMPLATES: Final[tuple[Template, ...]] = (
    Template(source="rbac.yaml"),
    Template(source="lease.yaml", when='include "slurm-bridge.ownsLease" .'),
    Template(source="deployment.yaml"),
    Template(source="pdb.yaml", when=_BUDGET),
    Template(source="networkpolicy.yaml", when=_NETWORK),
    Template(source="kube-scheduler/rbac.yaml", when='include "slurm-bridge.readsControllers" .'),
    Template(source="preemption/rbac.yaml", when=_hook("preemption")),
    Template(source="device-claims/rbac.yaml", when=_hook("device-claims")),
    Template(source="yunikorn/rbac.yaml", when=_hook("yunikorn")),
    Template(source="nodes/rbac.yaml", when='dig "nodes" "enabled" false .Values.config'),
    Template(source="parts/rbac.yaml", when='dig "parts" "own" "" .Values.config'),
    Template(source="submission/rbac.yaml", when=_SERVED),
    Template(source="submission/service.yaml", when=_SERVED),
    Template(source="submission/networkpolicy.yaml", when=f"and ({_SERVED}) {_NETWORK}"),
    Template(source="webhook/rbac.yaml", when=_WEBHOOK),
    Template(source="webhook/service.yaml", when=_WEBHOOK),
    Template(source="webhook/deployment.yaml", when=_WEBHOOK),
    Template(source="webhook/pdb.yaml", when=f"and {_WEBHOOK} {_BUDGET}"),
    Template(source="webhook/networkpolicy.yaml", when=f"and {_WEBHOOK} {_NETWORK}"),
    Template(source="webhook/webhooks.yaml", when=_WEBHOOK),
    Template(source="agents/rbac.yaml", when=_AGENTS),
    Template(source="agents/agent.yaml", when=_AGENTS),
    Template(source="admission/account.yaml", when=_POLICIES),
    Template(source="admission/claims.yaml", when=_POLICIES),
    Template(source="admission/marks.yaml", when=_POLICIES),
    Template(source="admission/volumes.yaml", when=_POLICIES),
    Template(source="servicemonitor/service.yaml", when=_MONITOR),
    Template(source="servicemonitor/servicemonitor.yaml", when=_MONITOR),
    Template(source="monitoring/prometheusrule.yaml", when=_RULES),
    Template(source="monitoring/dashboard.yaml", when=_DASHBOARD),
)

#: In every file, after its hunks and in this order.
_EVERYWHERE: Final = tuple(
    (re.compile(pattern, re.MULTILINE), new)
    for pattern, new in (
        # What users of kustomize have to change here follows from the values.
        (r"^ *# CHANGE (?:if the daemon runs|with scheduler_names) .*\n", ""),
        (
            r"system:serviceaccount:slurm-bridge-system:slurm-bridge\b",
            "system:serviceaccount:{{ $.Release.Namespace }}:{{ $name }}",
        ),
        (r"namespace: slurm-bridge-system$", "namespace: {{ $.Release.Namespace }}"),
        (r"kube-node-lease, slurm-bridge-system\]", "kube-node-lease, {{ $.Release.Namespace }}]"),
        (
            r"^( *(?:name|(?:policy|secret|serviceAccount)Name|app\.kubernetes\.io/name)): slurm-bridge(-[-a-z]+)?$",
            r"\1: {{ $name }}\2",
        ),
        (r'"slurm-bridge-scheduler"', "{{ $schedulers }}"),
        (r"runbook_url: docs/", "runbook_url: {{ $.Values.monitoring.docs }}/"),
    )
)
_VARIABLES: Final = {"$name": "fullname", "$schedulers": "schedulers", "$served": "served"}


def files(made: Mapping[pathlib.Path, str] | None = None) -> Iterator[tuple[pathlib.Path, str]]:
    """Every template that is made of a file, and its text; `made`: files as they will be written."""
    for template in TEMPLATES:
        file = DEPLOY / template.source
        yield CHART / "templates" / template.source, _text(template, (made or {}).get(file) or file.read_text())


def _text(template: Template, text: str) -> str:
    # Braces of other template languages stay as they are.
    text = text.replace("{{", '{{ "{{" }}')
    hunks = (HUNKS / template.source).with_suffix(".diff")
    if hunks.exists():
        text = changed(text, hunks.read_text(), template.source)
    for pattern, new in _EVERYWHERE:
        text = pattern.sub(new, text)
    used = [
        f'{{{{- {variable} := include "slurm-bridge.{helper}" . }}}}\n'
        for variable, helper in _VARIABLES.items()
        if re.search(rf"{re.escape(variable)}\b", text)
    ]
    lines = [f"{{{{- /* Made of deploy/{template.source} by `make docs`: change that file. */ -}}}}\n", *used, text]
    return "".join([f"{{{{- if {template.when} }}}}\n", *lines, "{{- end }}\n"] if template.when else lines)


def changed(text: str, hunks: str, source: str) -> str:
    """A file of deploy/ with every hunk applied, in their order."""
    for hunk in re.split(r"^@@\n", hunks, flags=re.MULTILINE)[1:]:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        text, times = re.subn(f"^{re.escape(old)}", lambda _, new=new: new, text, flags=re.MULTILINE)  # type: ignore[misc]
        if not times:
            raise ValueError(f"deploy/{source} has no such lines (any more), which hack/chart changes:\n{old}")
    return text
