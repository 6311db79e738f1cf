"""Manifests from a seed, good ones and bad ones: the webhook and the admission policies have to agree on each."""

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

from slurm_bridge.model import names
from slurm_bridge.translate import annotations
from tests import bad_manifests
from tests.unit.translate import test_annotations

Json = dict[str, Any]

JOB = names.JOB_PREFIX
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

#: What the webhook finds and policies do not, as an expression for its message, and why.
LEFT_TO_THE_SCHEDULER = {
    r"^Job .*-xxxxx: .*use at least the memory": "the annotation is in the Job's template of a CronJob",
    "one pod cannot span nodes": "of a template it depends on whether the pods are a gang",
    "every node takes at least one of": "it depends on the number of the pods of a gang",
    "podAntiAffinity": "of a template it depends on whether the pods are a gang, and mean each other",
}

_GOOD: dict[str, list[str]] = {}
for _key, _text, _ in test_annotations.GOOD:
    _GOOD.setdefault(_key, []).append(_text)
_LETTERS = "aZ09_.:,=/-+ *&|()[]!é\t\"'"


@dataclasses.dataclass(frozen=True, slots=True)
class Generator:
    """Manifests for pods of one scheduler."""

    dice: random.Random
    scheduler: str

    def manifests(self, count: int) -> Iterator[Json]:
        """So many, each with a name of its own."""
        makers = [self._pod, self._job, self._deployment, self._cronjob, self._jobset, self._leaderworkerset]
        for number in range(count):
            make = self.dice.choices(makers, weights=[8, 3, 2, 1, 1, 1])[0]
            yield make(f"random-{number}")

    def _pod(self, name: str) -> Json:
        made = bad_manifests.pod(name, self.scheduler, self._annotations(), **self._spec())
        metadata = made["metadata"]
        if self._rarely():
            metadata["labels"] = {names.LABEL_JOB_ID: "7"}
        if self._rarely():
            count = self.dice.choice((1, 16, 17))
            metadata["ownerReferences"] = [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{one}", "uid": f"u{one}"} for one in range(count)
            ]
        if self._rarely():
            size = self.dice.choice(("3", "many", "0", "", " 2 "))
            metadata["annotations"] |= {names.GROUP: "g", names.GROUP_SIZE: size}
        return made

    def _job(self, name: str) -> Json:
        return bad_manifests.job(name, self.scheduler, self._annotations(), self._of_pods(), **self._spec())

    def _deployment(self, name: str) -> Json:
        return bad_manifests.deployment(name, self.scheduler, self._of_pods(), **self._spec())

    def _cronjob(self, name: str) -> Json:
        job = self._job(name)
        template = {"metadata": {"annotations": job["metadata"]["annotations"]}, "spec": job["spec"]}
        spec = {"schedule": "* * * * *", "suspend": True, "jobTemplate": template}
        return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}

    def _jobset(self, name: str) -> Json:
        job = self._job(name)
        part = {"name": "workers", "replicas": 1, "template": {"spec": job["spec"]}}
        metadata = {"name": name, "annotations": job["metadata"]["annotations"]}
        return {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": metadata,
            "spec": {"replicatedJobs": [part]},
        }

    def _leaderworkerset(self, name: str) -> Json:
        deployment = self._deployment(name)
        template = deployment["spec"]["template"]
        spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
        metadata = {"name": name, "annotations": self._annotations()}
        return {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": metadata,
            "spec": spec,
        }

    def _of_pods(self) -> Json:
        marks = {names.ANNOTATION_BOUND_BY: "here"} if self._rarely() else {}
        return {"annotations": self._annotations() | marks}

    def _annotations(self) -> dict[str, str]:
        """Few, because one that is wrong hides whether the others are found wrong, too."""
        keys = self.dice.sample(sorted(annotations.BY_KEY), self.dice.choice((0, 1, 1, 1, 2, 3)))
        found = {JOB + key: self._value(key) for key in keys}
        if self._rarely():
            found[JOB + self.dice.choice(("accont", "Partition", "time-limit"))] = "x"
        return found

    def _value(self, key: str) -> str:
        sort = self.dice.random()
        good = self.dice.choice(_GOOD[key])
        if sort < 0.5:
            return good
        if sort < 0.6:
            return f" {good}\n"
        if sort < 0.8:
            return self.dice.choice([one for one in test_annotations.BAD[key] if len(one) < 300])
        place = self.dice.randrange(len(good) + 1)
        return good[:place] + self.dice.choice(_LETTERS) + good[place + self.dice.choice((0, 1)) :]

    def _rarely(self) -> bool:
        return self.dice.random() < 0.06

    def _spec(self) -> Json:
        """What is added to the spec of a pod, and is mostly nothing."""
        terms = [{"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}]
        when = self.dice.choice(("DoNotSchedule", "ScheduleAnyway"))
        spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, "labelSelector": {}}
        port = {"containerPort": 80, "hostPort": self.dice.choice((0, 80))}
        # The API server adds two tolerations, and a policy one.
        count = self.dice.choice((97, 101))
        amounts = {"cpu": self.dice.choice(("1", "70000")), "memory": "64Mi"}
        container = {"name": "c", "image": "busybox"}
        choices: list[Json] = [
            {"nodeName": "n1"},
            {"topologySpreadConstraints": [spread]},
            {"affinity": {"podAffinity": {_REQUIRED: terms}}},
            {"affinity": {"podAntiAffinity": {_REQUIRED: terms}}},
            {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
            {"tolerations": [{"key": f"k{one}", "operator": "Exists"} for one in range(count)]},
            {"nodeSelector": {f"k{one}": "v" for one in range(count)}},
            {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]},
            {"containers": [{**container, "ports": [port]}]},
            {"containers": [{**container, "resources": {"requests": amounts}}]},
        ]
        return self.dice.choice(choices) if self.dice.random() < 0.3 else {}
