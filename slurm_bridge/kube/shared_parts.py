"""Equal parts of pods are one object: pods by the hundred thousand come from a few templates, and each is read anew.

Containers, tolerations, labels, conditions and short words of a pod that was just decoded become those of an earlier
pod, where they are equal. What is remembered is bounded in number, and each part of it in size: users write it.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import msgspec

from slurm_bridge.model.pod import Container, Pod

T = TypeVar("T")

#: Parts that are remembered: beyond, all are forgotten.
MOST: Final = 8192
#: Longer parts are not: so many entries, and bytes of JSON.
_FEW: Final = 8
_BYTES: Final = 2048

_encode: Final = msgspec.json.Encoder().encode
_set: Final[Callable[[Any, str, object], None]] = msgspec.structs.force_setattr

_WORDS_OF_SPEC: Final = ("scheduler_name", "service_account_name", "restart_policy", "node_name", "priority_class_name")


class SharedParts:
    """For all threads that read pods."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        """How many parts are remembered."""
        return len(self._known)

    def take(self, pod: Pod) -> None:
        """Replace parts of a pod that was just decoded, and that nothing else refers to."""
        if len(self._known) >= MOST:
            self._known = {}
        spec, metadata, status = pod.spec, pod.metadata, pod.status
        if not spec.containers:
            return
        if len(spec.containers) <= _FEW:
            _set(spec, "containers", self._same(tuple(map(_written, spec.containers)), spec.containers))
        if 0 < len(spec.tolerations) <= _FEW:
            _set(spec, "tolerations", self._same(spec.tolerations, spec.tolerations))
        for field in _WORDS_OF_SPEC:
            if word := getattr(spec, field):
                _set(spec, field, self._word(word))
        _set(metadata, "namespace", self._word(metadata.namespace))
        if 0 < len(metadata.labels) <= _FEW:
            _set(metadata, "labels", self._same(tuple(metadata.labels.items()), metadata.labels))
        if 0 < len(status.conditions) <= _FEW:
            shared = [one if one.message else self._same(one, one) for one in status.conditions]
            _set(status, "conditions", tuple(shared))

    def _word(self, word: str) -> str:
        return self._same(word, word)

    def _same(self, written: Hashable, part: T) -> T:
        """The first part that was written like this one."""
        found: T | None = self._known.get(written)
        if found is None:
            if len(_encode(part)) <= _BYTES:
                self._known[written] = part
            return part
        return found


def _written(container: Container) -> Hashable:
    """All of a container, in what can be a key."""
    return container.name, container.image, container.restart_policy, container.resources.written, container.ports
