"""Questions to a server that may not be up yet: each returns "" when content, and otherwise the complaint."""

import http.client
import socket
import ssl
import urllib.error
import urllib.request

_SECONDS = 3.0


def http_ok(url: str, cafile: str | None = None) -> str:
    """Any 2xx counts. Proxies are ignored: everything here is on loopback."""
    context = ssl.create_default_context(cafile=cafile) if url.startswith("https:") else None
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=_SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        with error:
            return f"{url}: {error.code} {error.read(300).decode(errors='replace').strip()}"
    except (OSError, http.client.HTTPException) as error:
        return f"{url}: {error}"


def tcp_open(port: int) -> str:
    """A server accepts connections there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS):
            return ""
    except OSError as error:
        return f"127.0.0.1:{port}: {error}"
