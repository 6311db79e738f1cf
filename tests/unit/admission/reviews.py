"""Builders of AdmissionReviews and of rules for the tests of admission."""

import dataclasses
import json
from typing import Any

from slurm_bridge.admission import gate, review
from slurm_bridge.admission.gate import Webhook
from slurm_bridge.admission.review import AdmissionAnswer
from slurm_bridge.admission.rules import AdmissionRules
from slurm_bridge.model import kinds, names
from slurm_bridge.translate.rules import Rules

Json = dict[str, Any]

OURS = names.SCHEDULER_NAME
TEAM, MANAGED = "team", "managed"
DAEMON = "system:serviceaccount:slurm-bridge-system:slurm-bridge"
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"

RULES = AdmissionRules(
    translation=Rules(cluster_id="here"),
    scheduler_names=(OURS,),
    managed=lambda namespace: namespace == MANAGED,
    accounts=(DAEMON,),
)

_PLURALS = {(kind.group, kind.kind): kind.plural for kind in kinds.ALL}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The request around an object: its namespace, its user, and the rules."""

    namespace: str = TEAM
    user: str = "alice"
    groups: tuple[str, ...] = ("physics",)
    sub_resource: str = ""
    rules: AdmissionRules = RULES


ASKED = Asked()


def body(manifest: Json, before: Json | None = None, asked: Asked = ASKED, operation: str = "") -> bytes:
    """The review of a creation, or of an update where there is an object before."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    name = {"group": group, "version": version}
    plural = _PLURALS.get((group, manifest["kind"]), manifest["kind"].lower() + "s")
    request = {
        "uid": "u-1",
        "kind": {**name, "kind": manifest["kind"]},
        "resource": {**name, "resource": plural},
        "subResource": asked.sub_resource,
        "name": manifest["metadata"].get("name", ""),
        "namespace": asked.namespace,
        "operation": operation or ("CREATE" if before is None else "UPDATE"),
        "userInfo": {"username": asked.user, "groups": list(asked.groups), "uid": "x", "extra": {"a": ["b"]}},
        "object": manifest,
        "oldObject": before,
        "dryRun": False,
        "options": {"kind": "CreateOptions"},
    }
    return json.dumps({"apiVersion": review.API_VERSION, "kind": review.KIND, "request": request}).encode()


def validated(manifest: Json, before: Json | None = None, asked: Asked = ASKED) -> AdmissionAnswer:
    """The answer of the validating webhook."""
    return gate.answer(body(manifest, before, asked), Webhook.VALIDATE, asked.rules)[1]


def mutated(manifest: Json, before: Json | None = None, asked: Asked = ASKED) -> Json:
    """The object after the changes of the mutating webhook."""
    _, answer = gate.answer(body(manifest, before, asked), Webhook.MUTATE, asked.rules)
    assert answer.allowed
    assert answer.surprise is None
    return patched(manifest, answer)


def patched(manifest: Json, answer: AdmissionAnswer) -> Json:
    """The patch applied, as the API server does it."""
    made: Json = json.loads(json.dumps(manifest))
    for one in answer.patch:
        *path, last = (part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")[1:])
        parent: Any = made
        for step in path:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        if one["op"] == "remove":
            del parent[last]
        elif last == "-":
            parent.append(one["value"])
        else:
            parent[last] = one["value"]
    return made
