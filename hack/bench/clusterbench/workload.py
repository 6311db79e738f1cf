"""What each contestant schedules: pods of one cpu that run until they are deleted."""

import dataclasses
import json
from collections.abc import Mapping

from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.names import GROUP, GROUP_SIZE, JOB_PREFIX


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many pods of one scheduler in one namespace; `together` they are one gang, which is called as their prefix."""

    namespace: str
    scheduler: str
    pods: int
    prefix: str = "pod"
    partition: str = ""
    together: bool = False

    def names(self) -> list[str]:
        """In the order in which they are made."""
        return [f"{self.prefix}-{number}" for number in range(self.pods)]

    def manifest(self, name: str) -> bytes:
        """One of them, as it is sent."""
        return json.dumps(self.pod(name)).encode()

    def pod(self, name: str) -> Manifest:
        """One of them. Without the annotation KWOK would end the pods of Jobs, while others are still measured."""
        annotations: dict[str, str] = {"kwok.local/outcome": "run"}
        if self.partition:
            annotations[JOB_PREFIX + "partition"] = self.partition
        container: Mapping[str, object] = {
            "name": "c",
            "image": "busybox",
            "resources": {"requests": {"cpu": "1", "memory": "128Mi"}},
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations, "labels": self._labels()},
            "spec": {"schedulerName": self.scheduler, "containers": [container]},
        }

    def _labels(self) -> Mapping[str, str]:
        return {GROUP: self.prefix, GROUP_SIZE: str(self.pods)} if self.together else {}

    @property
    def path(self) -> str:
        """Where they are."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def arguments(self) -> list[str]:
        """For a process of its own."""
        return [json.dumps(dataclasses.asdict(self))]

    @classmethod
    def of_argument(cls, text: str) -> "Load":
        """The inverse."""
        return cls(**json.loads(text))
