"""Identifies callers: the bearer token of a request, and whose it is."""

import re
from typing import Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.web import refusals
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request

#: A token by RFC 6750. The API server would not accept anything else.
_WORDS: Final = re.compile(r"[A-Za-z0-9._~+/-]{1,12000}=*")


def bearer(request: Request) -> Token | None:
    """The token of this request; None without one."""
    scheme, _, words = request.headers.get("authorization", "").partition(" ")
    return token(words) if scheme.lower() == "bearer" else None


def token(words: str) -> Token | None:
    """The text as a token; None if it cannot be one."""
    found = _WORDS.fullmatch(words.strip())
    return Token(found.group()) if found else None


def reviewed(reviewer: ports.Callers, given: Token) -> Caller | Reply:
    """The owner of the token, or the answer if there is none.

    It is asked for each request: a token that was revoked, or a group that a user has left, counts at once.
    """
    try:
        caller = reviewer.who(given)
    except errors.BridgeError as error:
        logger.warning("the token of a caller could not be reviewed: {}", error)
        return refusals.unreviewed(error, "deploy/submission")
    return caller or refusals.unknown("the Kubernetes cluster does not accept this token")
