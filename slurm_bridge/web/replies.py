"""What a route is, and what it answers."""

import dataclasses
import http
import json
from collections.abc import Callable
from typing import Self

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer."""

    body: bytes = b""
    status: http.HTTPStatus = http.HTTPStatus.OK
    content_type: str = TEXT

    @classmethod
    def text(cls, words: str, status: http.HTTPStatus = http.HTTPStatus.OK) -> Self:
        """Lines for people."""
        return cls(body=words.encode(), status=status)

    @classmethod
    def json(cls, value: object, status: http.HTTPStatus = http.HTTPStatus.OK) -> Self:
        """Plain values for machines."""
        return cls(body=json.dumps(value).encode() + b"\n", status=status, content_type=JSON)


#: Makes the answer to a GET of one path.
Route = Callable[[], Reply]
