"""The client of the admin API of the queues. The administrator's token is sent to the daemon and shown nowhere."""

import argparse
import dataclasses
import http
import json
import pathlib
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from slurm_bridge import errors
from slurm_bridge.cli import pages
from slurm_bridge.kube import config as kube_config
from slurm_bridge.model.callers import Token
from slurm_bridge.settings import kinds
from slurm_bridge.web import administration, callers

#: The environment variable that may hold the token.
VARIABLE: Final = "SLURM_BRIDGE_TOKEN"

#: Why no token was sent, and what to do.
WITHHELD: Final = (
    "your token was not sent, because any program of this machine may listen at the default address: "
    "name the server with --url, or the token with --token-file"
)

#: A reload answers after all objects that the hooks newly need have been listed.
_SECONDS: Final = 60.0
_MOST_BYTES: Final = 16 << 20
#: The error that each status stands for.
ERRORS: Final[Mapping[int, type[errors.BridgeError]]] = {
    http.HTTPStatus.UNAUTHORIZED: errors.NotAuthenticated,
    http.HTTPStatus.FORBIDDEN: errors.NotAuthorized,
    http.HTTPStatus.NOT_FOUND: errors.NotFound,
    http.HTTPStatus.CONFLICT: errors.Conflict,
    http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE: errors.Invalid,
    http.HTTPStatus.INTERNAL_SERVER_ERROR: errors.BadConfiguration,
    http.HTTPStatus.SERVICE_UNAVAILABLE: errors.Unavailable,
    http.HTTPStatus.TOO_MANY_REQUESTS: errors.Unavailable,
}


def add_token_options(parser: argparse.ArgumentParser, *, also: str = "") -> None:
    """Where the caller's token comes from; `also` is said of the default."""
    parser.add_argument(
        "--token-file",
        type=pathlib.Path,
        metavar="FILE",
        help=f"your token (default: the variable {VARIABLE}{also})",
    )
    parser.add_argument(
        "--kubeconfig", type=pathlib.Path, metavar="FILE", help="use the token of this kubeconfig's user instead"
    )
    parser.add_argument("--plain-http", action="store_true", help="send the token without TLS")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TokenSource:
    """Where the token is: the first source that is given counts. No flag takes the token itself."""

    token_file: pathlib.Path | None = None
    kubeconfig: pathlib.Path | None = None
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def given(self) -> bool:
        """Some source is given."""
        return self.token_file is not None or self.kubeconfig is not None or VARIABLE in self.environ

    def token(self) -> Token:
        """Read the token. BadConfiguration names the source that holds none, and never what it holds."""
        words, source = self._found()
        token = callers.token(words)
        if token is None:
            raise errors.BadConfiguration(f"{source}: holds no bearer token")
        return token

    def _found(self) -> tuple[str, str]:
        if self.token_file is not None:
            try:
                return self.token_file.read_text(encoding="ascii"), f"--token-file {self.token_file}"
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "does not contain a token"
                raise errors.BadConfiguration(f"--token-file {self.token_file}: {why}") from None
        if self.kubeconfig is not None:
            headers = kube_config.from_kubeconfig(self.kubeconfig).headers()
            _, _, words = headers.get("authorization", "").partition(" ")
            return words, f"--kubeconfig {self.kubeconfig}"
        if VARIABLE in self.environ:
            return self.environ[VARIABLE], VARIABLE
        raise errors.BadConfiguration(
            f"a token is required: give --token-file, --kubeconfig or the variable {VARIABLE}"
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdminClient:
    """Asks the daemon at `url`. With `plain_http` the token may be sent without TLS.

    `assumed`: the user has not named the URL.
    """

    url: str
    credentials: TokenSource
    ca: pathlib.Path | None = None
    plain_http: bool = False
    assumed: bool = False

    def config(self) -> Mapping[str, Any]:
        """The configuration in force."""
        return self._good(*self._ask("GET", administration.CONFIG))

    def check(self, file: pathlib.Path) -> administration.CheckedConfiguration:
        """The reasons why this file cannot replace the configuration in force, and what of it would be ignored."""
        try:
            body = file.read_bytes()
        except OSError as error:
            raise errors.BadConfiguration(f"{file}: {error.strerror}") from error
        status, said = self._ask("POST", administration.VALIDATE, body)
        warnings = [str(one) for one in said.get("warnings", ())]
        return administration.CheckedConfiguration(problems=self._problems(status, said), warnings=warnings)

    def reload(self) -> tuple[str, list[str]]:
        """The daemon's message, and why the stored configuration is not in force; empty if it is."""
        status, said = self._ask("POST", administration.RELOAD, b"")
        found = self._problems(status, said)
        version = f", version {said['version']}" if said.get("version") else ""
        return f"{said.get('message', '')}{version}", found

    def _problems(self, status: int, said: Mapping[str, Any]) -> list[str]:
        if status == http.HTTPStatus.UNPROCESSABLE_ENTITY:
            return [str(one) for one in said.get("problems", ())] or [str(said.get("message", ""))]
        if status == http.HTTPStatus.BAD_REQUEST:
            return [str(said.get("message", ""))]
        self._good(status, said)
        return []

    def _good(self, status: int, said: Mapping[str, Any]) -> Mapping[str, Any]:
        if status == http.HTTPStatus.OK:
            return said
        raise ERRORS.get(status, errors.BadAnswer)(f"{self.url}: {said.get('message') or status}")

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Mapping[str, Any]]:
        """Status and answer. Errors contain the address and never the token."""
        private(self.url, plain_http=self.plain_http)
        if withheld(self.url, self.credentials, assumed=self.assumed, plain_http=self.plain_http):
            raise errors.BadConfiguration(f"{self.url}: {WITHHELD}")
        headers = {"Authorization": f"Bearer {self.credentials.token().words}"}
        status, text = pages.ask(
            method, self.url, path, ca=self.ca, seconds=_SECONDS, most_bytes=_MOST_BYTES, headers=headers, body=body
        )
        return status, _document(status, text)


def withheld(url: str, credentials: TokenSource, *, assumed: bool, plain_http: bool) -> bool:
    """There is a token, and it is not sent to this server.

    At an address that the user has not named, any program of the machine may listen while no daemon does. A token that
    was not given for this command is not sent there without TLS.
    """
    chosen = not assumed or plain_http or credentials.token_file is not None
    return credentials.given and not chosen and urllib.parse.urlsplit(url).scheme == "http"


def private(url: str, *, plain_http: bool) -> None:
    """Refuse to send a token where others can read it. BadConfiguration says what is allowed."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "http" and not plain_http and not kinds.loopback(parts.hostname or ""):
        raise errors.BadConfiguration(
            f"--url {url}: the token would be sent without TLS; use https://, a loopback address, or --plain-http"
        )


def _document(status: int, text: bytes) -> Mapping[str, Any]:
    """The JSON object of the answer; any other text becomes its message."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    if status == http.HTTPStatus.OK:
        raise errors.BadAnswer("the daemon answered 200 without JSON")
    if status == http.HTTPStatus.NOT_FOUND:
        return {"message": "the daemon has no admin API: web.administration.enabled is false"}
    return {"message": text[:200].decode(errors="replace").strip()}
