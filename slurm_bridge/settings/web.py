"""The keys of the HTTP door, and of what it lets in."""

from typing import Annotated, TypeVar

import pydantic
from pydantic import AfterValidator, Field

from slurm_bridge.settings import kinds
from slurm_bridge.settings.kinds import Count, File, Seconds, SettingsGroup


class Tls(SettingsGroup):
    """The certificate of the HTTP door."""

    cert: File
    """The certificate, and after it what leads to its authority; read again when it changes."""
    key: File | None = None
    """Its key, where it is not in the same file."""


class Submission(SettingsGroup):
    """`POST /pods`: pods that are handed in over HTTP and created with the rights of their users."""

    enabled: bool = False
    """On, callers hand their own tokens to the bridge: see `docs/submission.md` first."""
    plain_http: bool = False
    """Whether these tokens may come without TLS from other machines. Only where something in front of the bridge \
ends TLS."""
    pending: Count = 256
    """How many pods may be handed in that the scheduler has not seen yet; further ones are refused for the moment."""
    unseen_seconds: Seconds = 30.0
    """How long a pod counts as pending that was created and that the scheduler never sees."""
    most_bytes: Annotated[int, Field(ge=1024, le=3 << 20)] = 256 << 10
    """How large a manifest may be."""


class Administration(SettingsGroup):
    """`/queues/config`, `/queues/validate` and `/queues/reload`, for administrators of the queues of `yunikorn`."""

    enabled: bool = False
    """On, administrators send their own tokens to the bridge: see `docs/yunikorn.md`."""
    plain_http: bool = False
    """Whether these tokens may come without TLS from other machines. Only where something in front of the bridge \
ends TLS."""
    most_bytes: Annotated[int, Field(ge=1024, le=3 << 20)] = 1 << 20
    """How large a configuration may be that is to be validated."""
    requests_per_second: Annotated[float, Field(gt=0, le=100)] = 5.0
    """How often all users together may ask: each time the API server is asked whose the token is."""


_Tokens = TypeVar("_Tokens", Submission, Administration)


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
    """The port; 0 is any that is free."""
    probes_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """A port for `/livez` and `/readyz` alone, so that other requests cannot fill it; left out, `web.port` does."""
    tls: Tls | None = None
    """Left out, the door speaks plain HTTP; given, HTTPS alone, for probes and metrics too."""
    submission: Annotated[Submission, AfterValidator(_private)] = Submission()
    administration: Annotated[Administration, AfterValidator(_private)] = Administration()
