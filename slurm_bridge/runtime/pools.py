"""What both adapters ask of urllib3, so that a pocket server can stand in its place."""

from collections.abc import Mapping
from typing import Protocol, TypeVar

import urllib3

R_co = TypeVar("R_co", covariant=True)


class Pool(Protocol[R_co]):
    """Kept connections to one server: everything below this line is the library's, or a stand-in's."""

    def urlopen(  # noqa: PLR0913 - the library's signature
        self,
        method: str,
        url: str,
        *,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: urllib3.Timeout,
        retries: urllib3.Retry,
        redirect: bool,
        preload_content: bool,
    ) -> R_co: ...

    def close(self) -> None: ...
