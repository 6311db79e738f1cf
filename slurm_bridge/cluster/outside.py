"""A denial of nearly all nodes, for one reason."""

import dataclasses
from collections.abc import Iterator, Mapping

Nodes = frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Outside(Mapping[str, tuple[str, ...]]):
    """All nodes but some, for one reason: it is not written down for each of them."""

    every: Nodes
    inside: Nodes
    reason: str

    def __getitem__(self, name: str) -> tuple[str, ...]:
        if name in self.every and name not in self.inside:
            return (self.reason,)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.every - self.inside)

    def __len__(self) -> int:
        return len(self.every) - len(self.inside)

    def left(self, nodes: Nodes) -> Nodes:
        """Those of these nodes that are not outside."""
        return self.inside if nodes is self.every else nodes - (self.every - self.inside)

    def counts(self) -> Mapping[str, int]:
        """Of how many nodes each reason is true."""
        return {self.reason: len(self)} if len(self) else {}
