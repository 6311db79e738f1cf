"""The callers of our HTTP endpoints, and the token by which the API server knows them."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A bearer token. It is in no repr, so that no log and no error shows it by accident."""

    words: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The owner of a token, as the API server names them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
