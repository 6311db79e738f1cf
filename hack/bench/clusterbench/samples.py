"""Numbers in Prometheus' text format, as far as counters are concerned."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """One line."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse(text: str, names: Sequence[str]) -> Iterator[Sample]:
    """Every sample of these families; an API server's page has tens of thousands of others."""
    for line in text.splitlines():
        if line.startswith(tuple(names)) and (found := _SAMPLE.match(line)) and found[1] in names:
            yield Sample(found[1], dict(_LABEL.findall(found[2] or "")), float(found[3]))


def summed(samples: Iterable[Sample], labels: Sequence[str]) -> dict[str, float]:
    """Values added up by these labels, joined into one word each."""
    sums: dict[str, float] = {}
    for sample in samples:
        key = " ".join(filter(None, (sample.labels.get(label, "") for label in labels)))
        sums[key] = sums.get(key, 0) + sample.value
    return sums


def growth(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What was added meanwhile; a counter that did not move is left out."""
    differences = {key: value - before.get(key, 0) for key, value in after.items()}
    return {key: value for key, value in differences.items() if value}
