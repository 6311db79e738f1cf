"""What a token says of itself: when it was made, and when it ends."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TokenLife:
    """Unix times."""

    issued: float
    expires: float

    @property
    def whole(self) -> float:
        """Seconds from its first to its last moment."""
        return self.expires - self.issued
