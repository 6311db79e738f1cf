"""What the adapter needs to know to reach slurmrestd; filled by the composition root."""

import dataclasses
import pathlib
import urllib.parse

from slurm_bridge import errors
from slurm_bridge.runtime.http.connections import Endpoint
from slurm_bridge.runtime.http.messages import HttpLimits
from slurm_bridge.runtime.retries import Retries

#: How many times as long as its longest silence a whole answer may take.
_WHOLE = 4

SCHEMES = ("http://", "https://", "unix:///", "http+unix://")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSettings:
    """Where slurmrestd is, how we prove our identity, and how long we wait.

    `url` is `http://host:port`, `https://host:port`, `unix:///path/to/socket` or, quoted, `http+unix://%2Fpath`.
    `api_versions` stands in order of preference; one name alone pins the version. `recovery_timeout` is for full job
    lists, which take seconds. A `cache_ttl` of 0 asks Slurm every time.
    """

    url: str
    token_file: pathlib.Path
    user_name: str | None = None
    api_versions: tuple[str, ...] = ("v0.0.45", "v0.0.44", "v0.0.43")
    ca_file: pathlib.Path | None = None
    cert_file: pathlib.Path | None = None
    key_file: pathlib.Path | None = None
    connect_timeout: float = 3.0
    read_timeout: float = 15.0
    recovery_timeout: float = 60.0
    max_answer_bytes: int = 256 * 2**20
    cache_ttl: float = 5.0
    read_tries: int = 2
    read_first_pause: float = 0.1
    read_longest_pause: float = 2.0
    connections: int = 8

    def __post_init__(self) -> None:
        if not self.url.startswith(SCHEMES):
            raise errors.BadConfiguration(f"the address of slurmrestd has to start with one of {', '.join(SCHEMES)}")
        if "@" in self.url:
            raise errors.BadConfiguration("the address of slurmrestd must not carry a user name or password")
        if self.key_file is not None and self.cert_file is None:
            raise errors.BadConfiguration("a client key needs its certificate")
        try:
            self.server.check()
        except ValueError as problem:
            raise errors.BadConfiguration(f"the address of slurmrestd {problem}: {self.url}") from None

    @property
    def retries(self) -> Retries:
        """How reads are tried again."""
        return Retries(tries=self.read_tries, first_pause=self.read_first_pause, longest_pause=self.read_longest_pause)

    @property
    def server(self) -> Endpoint:
        """The address, and how both sides prove their identity."""
        quoted = self.url.removeprefix("http+unix://")
        socket = urllib.parse.unquote(quoted) if quoted != self.url else ""
        if self.url.startswith("unix://"):
            socket = self.url.removeprefix("unix://")
        return Endpoint(
            url="http://localhost" if socket else self.url,
            unix_socket=socket,
            ca_file=_text(self.ca_file),
            cert_file=_text(self.cert_file),
            key_file=_text(self.key_file),
        )

    @property
    def limits(self) -> HttpLimits:
        """How long and how much is listened; slurmctld thinks before the answer begins, and then it comes quickly."""
        return HttpLimits(
            connect=self.connect_timeout,
            answer=self.read_timeout,
            whole_answer=_WHOLE * self.read_timeout,
            most_bytes=self.max_answer_bytes,
            connections=self.connections,
        )


def _text(path: pathlib.Path | None) -> str:
    return "" if path is None else str(path)
