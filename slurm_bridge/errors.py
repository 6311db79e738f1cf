"""Every exception that one package may raise for another, grouped by what has to happen next.

Expected obstacles are values, not exceptions; what stands here are surprises from the outside.

    BridgeError
    ├── OperatorMustAct            retrying alone will not help
    │   ├── BadConfiguration       a setting, file or address that cannot work
    │   ├── NotAuthenticated       the server does not accept our token or certificate
    │   ├── NotAuthorized          the server knows us and says no
    │   └── NoCommonVersion        the server speaks no API version that we speak
    │       └── NoExternalJobs     it speaks older ones only: its release of Slurm has no external jobs
    ├── TryLater                   it may pass by itself
    │   ├── Unavailable            not reached, or it says that it cannot serve now: nothing was done
    │   ├── Unanswered             it was asked and may have acted; the answer is missing
    │   ├── BadAnswer              truncated, too large, not JSON, or of an impossible shape
    │   │   └── Unreadable         the server answers, and this one object in its answer cannot be read: it is unknown
    │   ├── Expired                the remembered resource version is too old: list again
    │   └── NotLeading             another replica leads, or may: nothing was sent
    └── Disagreement               the server understood and refused; the caller decides what follows
        ├── NotFound               no such object
        ├── Conflict               it exists already, changed meanwhile, or is in the wrong state
        └── Invalid                the request itself is unacceptable
"""


class BridgeError(Exception):
    """The root of all errors of this program."""


class OperatorMustAct(BridgeError):
    """Retrying alone will not help."""


class BadConfiguration(OperatorMustAct):
    """A setting, file or address that cannot work."""


class NotAuthenticated(OperatorMustAct):
    """The server does not accept our credentials."""


class NotAuthorized(OperatorMustAct):
    """The server knows us and says no."""


class NoCommonVersion(OperatorMustAct):
    """The server speaks no API version that we speak."""


class NoExternalJobs(NoCommonVersion):
    """The server speaks older API versions only: its release of Slurm has no external jobs, and no retry will help."""


class TryLater(BridgeError):
    """It may pass by itself; `retry_after` is the server's own wish in seconds, where it named one."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(TryLater):
    """Not reached, or it says that it cannot serve now: nothing was done."""


class Unanswered(TryLater):
    """It was asked and may have acted; the answer is missing."""


class BadAnswer(TryLater):
    """Truncated, too large, not JSON, or of an impossible shape."""


class Unreadable(BadAnswer):
    """The server answers, and this one object in its answer cannot be read. It exists: unknown is not gone."""


class Expired(TryLater):
    """The remembered resource version is too old: list again."""


class NotLeading(TryLater):
    """Another replica leads, or may: nothing was sent."""


class Disagreement(BridgeError):
    """The server understood and refused; `code` is its own number (Slurm's error_number, or the HTTP status)."""

    def __init__(self, message: str, *, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class NotFound(Disagreement):
    """No such object."""


class Conflict(Disagreement):
    """It exists already, changed meanwhile, or is in the wrong state."""


class Invalid(Disagreement):
    """The request itself is unacceptable."""
