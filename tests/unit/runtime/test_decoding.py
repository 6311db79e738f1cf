"""Many threads that meet a type of JSON for the first time at once."""

import pathlib
import re
import subprocess
import sys

import slurm_bridge
from slurm_bridge.runtime import json_decoder

SOURCES = sorted(pathlib.Path(slurm_bridge.__file__).parent.rglob("*.py"))

#: The first reading of types that nobody has described yet, by eight threads; a race ends the process.
FIRST = """
import sys, threading, msgspec
from slurm_bridge.kube import codec
from slurm_bridge.model import kinds
from slurm_bridge.slurm import replies, shapes
from slurm_bridge.runtime.http.messages import HttpAnswer
sys.setswitchinterval(1e-6)
SHAPES = [one for one in vars(shapes).values() if isinstance(one, type) and issubclass(one, shapes.Envelope)]
START = threading.Barrier(8)

def read(number):
    START.wait()
    for kind in (*kind_table.RESOURCES[number:], *kinds.ALL[:number]):
        codec.codec(kind).page(b'{"metadata": {"resourceVersion": "1"}, "items": []}')
    for shape in (*SHAPES[number:], *SHAPES[:number]):
        replies.decode(HttpAnswer(status=200, body=b'{"jobs": [{"job_id": 1}], "nodes": []}'), shape)

threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("survived")
"""


def test_types_may_be_met_by_many_threads_at_once() -> None:
    """Whoever comes second waits for a whole description; a race would end the process without a word."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "survived"), done.stderr


def test_a_decoder_is_made_once() -> None:
    """And shared by all."""
    assert json_decoder.decoder(int) is json_decoder.decoder(int)


def test_nobody_decodes_a_type_without_a_decoder() -> None:
    """`decode(..., type=...)` describes the type on the way, in whichever thread that happens to be."""
    calls = re.compile(r"json\.decode\([^\n]*type=")
    assert [str(path) for path in SOURCES if calls.search(path.read_text(encoding="utf-8"))] == []
