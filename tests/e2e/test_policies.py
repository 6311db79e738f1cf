"""The generated admission policies on the real API server: they refuse and change what the webhook does.

The policies are those of the command, for the namespaces of this module: other modules run beside it. Everything is a
dry run, so no pod is made.
"""

import dataclasses
import json
import random
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from slurm_bridge.admission import policies, review, validate
from slurm_bridge.admission.policies import PolicyRules
from slurm_bridge.admission.rules import AdmissionRules
from slurm_bridge.model import kinds, names, texts
from slurm_bridge.translate.rules import Rules
from tests import admission_manifests, bad_manifests, wait
from tests.admission_manifests import LEFT_TO_THE_SCHEDULER
from tests.e2e import support_servers
from tests.unit.admission import reviews

pytestmark = pytest.mark.real

REGISTRATION = f"/apis/{policies.VERSION}"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
SEED, COUNT = 18, 500
TOLERATION = {"key": "slinky.slurm.net/managed-node", "operator": "Exists", "effect": "NoSchedule"}
ASKED = {names.JOB_PREFIX + names.ENVIRONMENT: "true"}

#: Words of the webhook that CEL cannot find: the nearest key, and places in lists.
OTHER_WORDS = re.compile(r"did you mean|\[[0-9]+\]")

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Site:
    """The API server, a scheduler, a managed namespace, and one in which pods have to name the scheduler."""

    kube: support_servers.Kubernetes
    scheduler: str
    managed: str
    team: str

    @property
    def rules(self) -> AdmissionRules:
        """Those of the webhook."""
        return AdmissionRules(translation=Rules(cluster_id="here"), scheduler_names=(self.scheduler,))

    def path(self, manifest: Json, namespace: str) -> str:
        """Where such objects are."""
        group, _, _ = manifest["apiVersion"].rpartition("/")
        (plural,) = {one.plural for one in kinds.ALL if (one.group, one.kind) == (group, manifest["kind"])}
        root = f"/apis/{manifest['apiVersion']}" if group else "/api/v1"
        return f"{root}/namespaces/{namespace}/{plural}"

    def create(self, manifest: Json, namespace: str = "") -> Json:
        """What would be stored."""
        return self.kube.create(f"{self.path(manifest, namespace or self.team)}?dryRun=All", manifest)

    def refusal(self, manifest: Json) -> str:
        """Why it is refused; "" when it is not."""
        try:
            self.create(manifest)
        except support_servers.Refused as refused:
            return str(refused)
        return ""

    def webhook(self, manifest: Json) -> tuple[str, ...]:
        """What the webhook says."""
        body = reviews.body(manifest, asked=reviews.Asked(namespace=self.team))
        return validate.problems(review.read(body), self.rules)


@pytest.fixture(scope="module")
def site(kube: support_servers.Kubernetes) -> Iterator[Site]:
    """The policies in force for two new namespaces."""
    end = secrets.token_hex(3)
    found = Site(kube=kube, scheduler=f"policies-{end}", managed=f"policies-m-{end}", team=f"policies-t-{end}")
    for name in (found.managed, found.team):
        kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
    rules = PolicyRules(
        schedulers=(found.scheduler,), managed=(found.managed,), taint="slinky.slurm.net/managed-node:NoSchedule"
    )
    made = [_applied(found, one, end) for one in policies.objects(rules)]
    bad = bad_manifests.pod("probe", found.scheduler, {names.JOB_PREFIX + "gang": "x"})
    cron = bad_manifests.job("probe", found.scheduler, {names.JOB_PREFIX + "gang": "x"})
    open_ = bad_manifests.pod("probe", "default-scheduler", ASKED)

    def in_force() -> bool:
        there = found.create(open_, found.managed)["spec"]
        changed = there["schedulerName"] == found.scheduler and "env" in there["containers"][0]
        return changed and bool(found.refusal(bad)) and bool(found.refusal(cron))

    wait.until(in_force, "the policies in force")
    yield found
    for path in made:
        kube.delete(path)
    for name in (found.managed, found.team):
        kube.delete(f"/api/v1/namespaces/{name}")


def _applied(site: Site, manifest: Json, end: str) -> str:
    """The path of the copy, which counts in the namespaces of this module only."""
    manifest["metadata"]["name"] += f"-{end}"
    if "policyName" in manifest["spec"]:
        manifest["spec"]["policyName"] += f"-{end}"
        chosen = {"key": policies.NAMESPACE, "operator": "In", "values": [site.managed, site.team]}
        manifest["spec"].setdefault("matchResources", {"namespaceSelector": {"matchExpressions": [chosen]}})
    path = f"{REGISTRATION}/{PLURALS[manifest['kind']]}"
    site.kube.create(path, manifest)
    return f"{path}/{manifest['metadata']['name']}"


@pytest.mark.security("input")
def test_bad_manifests_are_refused_in_the_words_of_the_webhook(site: Site) -> None:
    """Admission policies refuse each bad manifest that the webhook refuses, in its words but for places in lists."""
    wrong = []
    for bad in bad_manifests.manifests(site.scheduler):
        said = site.refusal(bad.manifest)
        missing = [words for words in bad.words if words not in said and not OTHER_WORDS.search(words)]
        if "slurm-bridge" not in said or missing:
            wrong.append(f"{bad.name}: lacks {missing}: {said or 'allowed'}")
    assert not wrong, "\n".join(wrong)


def test_policies_and_webhook_refuse_the_same_random_manifests(site: Site) -> None:
    """And let the same ones pass, of a few hundred of every kind."""
    generator = admission_manifests.Generator(random.Random(SEED), site.scheduler)
    wrong, refused, compared = [], 0, 0
    for manifest in generator.manifests(COUNT):
        problems = site.webhook(manifest)
        found = [one for one in problems if not any(re.search(words, one) for words in LEFT_TO_THE_SCHEDULER)]
        if problems and not found:
            continue
        compared += 1
        said = texts.plain(site.refusal(manifest))
        refused += bool(said)
        allowed_words = [one.partition("annotation ")[2] for one in found if not OTHER_WORDS.search(one)]
        missing = [words for words in allowed_words if words and words not in said and "unknown key" not in words]
        if bool(said) != bool(found) or (said and "slurm-bridge" not in said) or (missing and "…" not in said):
            wrong.append(f"{json.dumps(manifest)}\n  webhook: {found}\n  policies: {said or 'allowed'}\n  {missing}")
    assert not wrong, f"{len(wrong)} of {compared}\n" + "\n".join(wrong[:5])
    assert 0.3 * compared < refused < 0.9 * compared
    assert compared > 0.9 * COUNT


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "annotations",
    [
        {"gres": ",".join(f"g{number}:1" for number in range(20_000))},
        {"partition": ",".join(["a"] * 100_000)},
        {f"key{number}": "v" for number in range(2_000)},
    ],
    ids=["gres", "partition", "keys"],
)
def test_what_would_take_the_api_server_long_is_refused_at_once(site: Site, annotations: Mapping[str, str]) -> None:
    """Admission policies refuse huge annotations with a message, and take no seconds of the API server for them."""
    written = {names.JOB_PREFIX + key: value for key, value in annotations.items()}
    for make in (bad_manifests.pod, bad_manifests.job):
        said = site.refusal(make("huge", site.scheduler, written))
        assert re.search(r"\buse ", said)
        assert "cost limit" not in said


@pytest.mark.security("rights")
def test_what_is_not_the_bridges_is_left_alone(site: Site) -> None:
    """Admission policies touch no pod of another scheduler, and no pod of a DaemonSet in a managed namespace."""
    for bad in bad_manifests.manifests("another-scheduler"):
        if bad.manifest["kind"] != "PodGroup":
            assert site.refusal(bad.manifest) == "", bad.name
    made = site.create(bad_manifests.pod("other", "another-scheduler", ASKED), site.managed)
    assert TOLERATION not in made["spec"]["tolerations"]
    assert (made["spec"]["schedulerName"], "env" in made["spec"]["containers"][0]) == ("another-scheduler", False)
    daemon = bad_manifests.pod("agent", "default-scheduler", nodeName="n1")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    daemon["metadata"]["ownerReferences"] = [owner]
    spec = site.create(daemon, site.managed)["spec"]
    assert (spec["schedulerName"], spec["nodeName"]) == ("default-scheduler", "n1")


def test_a_pod_of_a_managed_namespace_becomes_the_bridges(site: Site) -> None:
    """With Slurm's environment in every container, in front of its own variables, of which none is replaced."""
    own = [{"name": "RANK", "value": "mine"}]
    manifest = bad_manifests.pod("web", "default-scheduler", {names.JOB_PREFIX + names.ENVIRONMENT: "torch"})
    manifest["spec"]["containers"] = [{"name": name, "image": "none", "env": own} for name in ("a", "b")]
    manifest["spec"] |= {"nodeName": "n1", "initContainers": [{"name": "c", "image": "none"}]}
    made = site.create(manifest, site.managed)["spec"]
    assert (made["schedulerName"], made.get("nodeName")) == (site.scheduler, None)
    assert made["tolerations"].count(TOLERATION) == 1
    for container in made["containers"]:
        variables = [one["name"] for one in container["env"]]
        assert variables[:2] == ["SLURM_JOB_ID", "SLURM_JOBID"]
        assert variables.count("WORLD_SIZE") == 1
        assert [one for one in container["env"] if one["name"] == "RANK"] == own
        assert container["env"][-1] == own[0]
    assert len(made["initContainers"][0]["env"]) == len(made["containers"][0]["env"])


def test_an_object_that_was_wrong_before_can_still_be_changed(site: Site) -> None:
    """Its labels, progress and new annotations that are right; what becomes wrong is refused."""
    wrong, key = {names.JOB_PREFIX + "gang": "x"}, names.JOB_PREFIX + "timelimit"
    pod = bad_manifests.pod("old", "another-scheduler", wrong)
    job = bad_manifests.job("old", site.scheduler)
    paths = [f"{site.path(one, site.team)}/old" for one in (pod, job)]
    site.kube.create(paths[1].removesuffix("/old"), {**job, "spec": {**job["spec"], "suspend": True}})
    with pytest.raises(support_servers.Refused, match="a whole number of minutes"):
        site.kube.merge(paths[1], {"metadata": {"annotations": {key: "soon"}}})
    site.kube.merge(paths[1], {"metadata": {"annotations": {key: "5"}, "labels": {"a": "b"}}})
    site.kube.delete(f"{paths[1]}?propagationPolicy=Background")
    site.kube.create(paths[0].removesuffix("/old"), bad_manifests.pod("old", site.scheduler))
    with pytest.raises(support_servers.Refused, match="only slurm-bridge may write"):
        site.kube.merge(f"{paths[0]}/status", {"metadata": {"annotations": {names.ANNOTATION_PARKED: "{}"}}})
    amounts = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "64Mi"}}}]}}
    with pytest.raises(support_servers.Refused, match="its resources cannot be changed while it exists"):
        site.kube.merge(f"{paths[0]}/resize", amounts)
    site.kube.merge(paths[0], {"metadata": {"labels": {"a": "b"}}})
    site.kube.delete(f"{paths[0]}?gracePeriodSeconds=0")
