"""The daemon as a pod on a real node: its image is there without a registry, and both servers are within reach."""

import contextlib
import pathlib
import select
import socket
import socketserver
import threading
import urllib.parse
from collections.abc import Iterator

from localcluster import engine, gomodules, real_network
from localcluster.config import Config
from localcluster.real_machine import Machine

NODE = Machine(number=1)

_PIECE = 1 << 16


def imported(config: Config, image: str, folder: pathlib.Path) -> str:
    """An image as kubelets name it, known to the containerd of the node."""
    ctr = (str(gomodules.binary(config, "ctr")), "--namespace=k8s.io", "images")
    name = f"docker.io/{image}"
    if name not in NODE.run(config, *ctr, "list", "--quiet").split():
        archive = folder / "image.tar"
        engine.docker(config, "save", f"--output={archive}", image)
        NODE.run(config, *ctr, "import", "--snapshotter=native", "--local", str(archive), seconds=120.0)
        archive.unlink()
    return name


@contextlib.contextmanager
def relayed(config: Config, url: str) -> Iterator[tuple[str, int]]:
    """An address for pods behind which a server of loopback answers."""
    there = urllib.parse.urlsplit(url)

    class Handler(socketserver.BaseRequestHandler):
        """One connection."""

        def handle(self) -> None:
            with contextlib.suppress(OSError), socket.create_connection((there.hostname, there.port or 443)) as far:
                _exchange(self.request, far)

    with socketserver.ThreadingTCPServer((real_network.address(config, NODE.number), 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, name="relay", daemon=True)
        thread.start()
        try:
            yield str(server.server_address[0]), int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def _exchange(one: socket.socket, other: socket.socket) -> None:
    """Until either side has ended."""
    while True:
        for ready in select.select([one, other], [], [])[0]:
            piece = ready.recv(_PIECE)
            if not piece:
                return
            (other if ready is one else one).sendall(piece)
