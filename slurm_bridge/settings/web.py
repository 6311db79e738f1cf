"""The keys of the HTTP door, and of what it lets in."""

from typing import Annotated, TypeVar

import pydantic
from pydantic import AfterValidator, Field

from slurm_bridge.settings import kinds
from slurm_bridge.settings.kinds import Count, File, Seconds, SettingsGroup


class Tls(SettingsGroup):
    """The certificate of the HTTP door."""

    cert: File
    """The certificate, followed by its chain. The file is read again when it changes."""
    key: File | None = None
    """The key of the certificate, if it is not in the same file."""


class Submission(SettingsGroup):
    """`POST /pods`: pods that are handed in over HTTP and created with the rights of their users."""

    enabled: bool = False
    """Enables the submission API. Callers send their own tokens to the bridge: read `docs/submission.md` first."""
    plain_http: bool = False
    """Whether callers on other machines may send these tokens without TLS. Only if a proxy in front of the bridge \
terminates TLS."""
    pending: Count = 256
    """How many submitted pods may exist that the scheduler has not seen yet. Further pods are refused with 429."""
    unseen_seconds: Seconds = 30.0
    """How long a created pod counts as pending if the scheduler never sees it."""
    most_bytes: Annotated[int, Field(ge=1024, le=3 << 20)] = 256 << 10
    """The largest manifest, in bytes."""


class Administration(SettingsGroup):
    """`/queues/config`, `/queues/validate` and `/queues/reload`, for administrators of the queues of `yunikorn`."""

    enabled: bool = False
    """Enables the admin API of the queues. Administrators send their own tokens to the bridge: see \
`docs/yunikorn.md`."""
    plain_http: bool = False
    """Whether callers on other machines may send these tokens without TLS. Only if a proxy in front of the bridge \
terminates TLS."""
    most_bytes: Annotated[int, Field(ge=1024, le=3 << 20)] = 1 << 20
    """The largest configuration to validate, in bytes."""
    requests_per_second: Annotated[float, Field(gt=0, le=100)] = 5.0
    """How many requests per second all users together may make. For each of them the API server reviews the token."""


class LiveView(SettingsGroup):
    """`/ui`: the live view for people, as a page and for `slurm-bridge top`; see `docs/live-view.md`."""

    enabled: bool = False
    """Enables the live view. Unless `web.host` is a loopback address, viewers send their own tokens to the bridge, \
and see what their rights in Kubernetes allow."""
    plain_http: bool = False
    """Whether viewers on other machines may send these tokens without TLS. Only if a proxy in front of the bridge \
terminates TLS."""
    viewers: Annotated[int, Field(ge=1, le=256)] = 16
    """How many viewers there may be at the same time. Each of them keeps one connection."""
    period_seconds: Annotated[float, Field(ge=0.2, le=60)] = 1.0
    """The time between two updates."""
    most_workloads: Annotated[int, Field(ge=1, le=100_000)] = 20_000
    """How many workloads are shown; of all others the view shows the number."""
    stream_seconds: Annotated[float, Field(ge=1)] = 3600.0
    """How long one connection of a viewer lasts; then the viewer connects again."""
    stream_mebibytes: Annotated[int, Field(ge=1, le=4096)] = 256
    """How much is sent on one connection of a viewer; then the viewer connects again."""
    requests_per_second: Annotated[float, Field(gt=0, le=1000)] = 20.0
    """How many requests per second all viewers together may make. For each of them the API server reviews the token."""
    explanations_per_minute: Annotated[float, Field(gt=0, le=600)] = 12.0
    """How many explanations per minute all viewers together may ask for. For each of them nodes and pods are listed."""


_Tokens = TypeVar("_Tokens", Submission, Administration, LiveView)


def _private(wanted: _Tokens, group: pydantic.ValidationInfo) -> _Tokens:
    """Tokens are worth what their owners may do: they do not travel where others can read them."""
    given = group.data
    if wanted.enabled and not wanted.plain_http and given.get("tls", True) is None:
        host, name = given.get("host", ""), f"web.{group.field_name}"
        if not kinds.loopback(host):
            raise ValueError(f"needs web.tls, because callers send tokens to {host}; or set {name}.plain_http")
    return wanted


class Web(SettingsGroup):
    """The HTTP door for probes and metrics, and for those with tokens where they are let in."""

    host: str = "127.0.0.1"
    """The address to listen on; in a pod `0.0.0.0`."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """The port. 0: any free port."""
    probes_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """A port for `/livez` and `/readyz` only, so that other requests cannot block the probes. Left out, only \
`web.port` serves them."""
    tls: Tls | None = None
    """With it the port serves HTTPS only, also for probes and metrics. Left out, the port serves plain HTTP."""
    submission: Annotated[Submission, AfterValidator(_private)] = Submission()
    administration: Annotated[Administration, AfterValidator(_private)] = Administration()
    live_view: Annotated[LiveView, AfterValidator(_private)] = LiveView()

    @property
    def viewers_send_tokens(self) -> bool:
        """The live view is enabled, and other machines may reach it."""
        return self.live_view.enabled and not kinds.loopback(self.host)
