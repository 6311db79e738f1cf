"""Identifies callers: the bearer token of a request."""

import http
import re
from typing import Final

from slurm_bridge.model.callers import Token
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


def unknown(words: str) -> Reply:
    """The answer to a request without a valid token."""
    given = {"reason": "Unauthorized", "message": words}
    return Reply.json(given, http.HTTPStatus.UNAUTHORIZED, www_authenticate="Bearer")
