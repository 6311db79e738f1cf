"""How the hook "kai" is configured: topologies, and where each of them is read."""

from typing import Annotated, Any, Literal, Self

import pydantic

from slurm_bridge.families.kai import copies
from slurm_bridge.families.kai.copies import BadCopy, Copy

_Name = Annotated[str, pydantic.Field(min_length=1, max_length=253)]


class TopologyOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """One topology: its levels, and what tells in which domain of each a node is."""

    name: _Name
    """The name of the topology in workloads."""
    levels: Annotated[tuple[_Name, ...], pydantic.Field(min_length=1)]
    """Its levels from the coarsest to the finest, as workloads name them; with `labels` the keys of node labels."""
    source: Literal["labels", "annotation", "slurm", "copy"] = "labels"
    """Where it is read: the labels of Kubernetes' nodes, their annotation `topology.slinky.slurm.net/spec`, what
    Slurm says of its nodes, or a copy of Slurm's configuration that is given here."""
    slurm_name: str = ""
    """What Slurm calls this topology in `topology.yaml`, and in what it says of nodes; empty: the same."""
    conf: str = ""
    """A copy of `topology.conf`."""
    tree: Any = None
    """A copy of `topology.yaml`."""
    file: str = ""
    """A file with either of them, by its ending `.yaml`; it is read at the start and with each configuration."""

    @property
    def called(self) -> str:
        """By Slurm."""
        return self.slurm_name or self.name

    def copy_of(self) -> Copy | None:
        """What is given here of Slurm's configuration; None where that is a file, or nothing."""
        if self.conf:
            return copies.of_conf(self.conf)
        return copies.of_yaml(self.tree, self.called) if self.tree is not None else None

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Self:
        given = [key for key in ("conf", "tree", "file") if getattr(self, key)]
        if len(given) > 1:
            raise ValueError(f"topology {self.name}: has {' and '.join(given)}; use one of them")
        if self.source == "copy" and not given:
            raise ValueError(f"topology {self.name}: source copy needs one of conf, tree and file")
        if given and self.source == "labels":
            raise ValueError(f"topology {self.name}: {given[0]} is of no use with source labels")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError(f"topology {self.name}: levels {', '.join(self.levels)}: each may be there once")
        try:
            self.copy_of()
        except BadCopy as bad:
            raise ValueError(f"topology {self.name}: {given[0]}: {bad}") from bad
        return self


class KaiOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Topologies, and how many sets of nodes are tried."""

    topologies: Annotated[tuple[TopologyOptions, ...], pydantic.Field(min_length=1)]
    """The topologies that workloads may name."""
    default: str = ""
    """The topology of workloads that name a level only; empty: the one that has this level."""
    candidates: Annotated[int, pydantic.Field(ge=1, le=10)] = 3
    """How many node sets of each preferred level are tried before those of the next wider level."""

    @pydantic.model_validator(mode="after")
    def _named(self) -> Self:
        names = [one.name for one in self.topologies]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"topologies: the name {twice[0]} is given to more than one")
        if self.default and self.default not in names:
            raise ValueError(f"default {self.default!r} is no topology; there are {', '.join(names)}")
        return self
