"""Creates the pods in a process of its own, whose CPU time no contestant pays: `python -m clusterbench.loader`.

A line for each: name, uid, the moment at which the request was sent. A last line: cpu and seconds.
"""

import concurrent.futures
import json
import os
import pathlib
import sys
import threading
import time

from clusterbench import bare
from clusterbench.workload import Load

HANDS = 4
CPU = "cpu"


def main(kubeconfig: str, argument: str) -> None:
    """Create, tell, end."""
    load = Load.of_argument(argument)
    server = bare.kubernetes(pathlib.Path(kubeconfig), HANDS)
    begin = _cpu()
    lock = threading.Lock()

    def create(name: str) -> None:
        sent = time.time()
        made = json.loads(server.call("POST", load.path, load.manifest(name)))
        with lock:
            print(name, made["metadata"]["uid"], sent, flush=True)

    with concurrent.futures.ThreadPoolExecutor(HANDS) as pool:
        for done in [pool.submit(create, name) for name in load.names()]:
            done.result()
    print(CPU, _cpu() - begin, flush=True)


def _cpu() -> float:
    """Without what the interpreter needed to start."""
    times = os.times()
    return times.user + times.system


if __name__ == "__main__":
    main(*sys.argv[1:])
