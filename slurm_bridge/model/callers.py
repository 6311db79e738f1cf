"""Who asks something of us, and the token by which the API server knows them."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """Somebody's bearer token. Its words are in no repr, so that they get into no log and no error by accident."""

    words: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whose token it is, in the API server's own words."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
