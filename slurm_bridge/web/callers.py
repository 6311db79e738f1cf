"""Who asks: the bearer token of a request."""

import http
import re
from typing import Final

from slurm_bridge.model.callers import Token
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request

#: As RFC 6750 has it. Whatever else a client sends is no token, and would not be one for the API server.
_WORDS: Final = re.compile(r"[A-Za-z0-9._~+/-]{1,12000}=*")


def bearer(request: Request) -> Token | None:
    """The token that this request carries."""
    scheme, _, words = request.headers.get("authorization", "").partition(" ")
    return token(words) if scheme.lower() == "bearer" else None


def token(words: str) -> Token | None:
    """These words as one, where they can be."""
    found = _WORDS.fullmatch(words.strip())
    return Token(found.group()) if found else None


def unknown(words: str) -> Reply:
    """For whoever has no token, or none that is good."""
    given = {"reason": "Unauthorized", "message": words}
    return Reply.json(given, http.HTTPStatus.UNAUTHORIZED, www_authenticate="Bearer")
