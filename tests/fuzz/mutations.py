"""An answer that a server really gave, spoiled: in its JSON, where structure and types are meant, or in its bytes."""

import copy
import functools
import random
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import msgspec

from slurm_bridge.slurm import shapes
from tests.fuzz import generators

#: Stand for what no encoder writes.
_DIGITS, _DEEP, _WIDE = "@@digits@@", "@@deep@@", "@@wide@@"

ODD: Sequence[object] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e300,
    2**53 + 1,
    2**63,
    _DIGITS,
    _DEEP,
    _WIDE,
    "",
    "x",
    [],
    {},
    [None],
    [[[]]],
    {"set": True, "infinite": False, "number": 1e308},
    {"set": True, "infinite": True, "number": -1},
    {"set": "yes"},
    ["NO_SUCH_STATE"],
    ["RUNNING", "PENDING"],
    "n[1-100000]",
    "n[1-4]-[1-90000]",
    "n[0000000000001-99999999999]",
    "n[1-",
    "n[3-1]",
    "0xZZ",
    "0x" + "F" * 5000,
    "-0x1",
    "1_000",
    "²",
    "5+٣",
    "7_[1-3]",
    "99999999999999999999+1",
    "1.99",
    "gpu:v100:99999999999999999999(IDX:0-)",
    "gpu:(((",
    "\n\x1b[31m",
    "\ufffd",
    '{"mark":"slurm-bridge/1","owner":' + '{"a":' * 2000,
    "[" * 60_000,
)

HEADERS: Sequence[tuple[int, str]] = (
    (503, "86400"),
    (503, "9" * 400),
    (429, "-5"),
    (503, "nan"),
    (503, "inf"),
    (503, "1e9"),
    (503, "٣"),
    (503, "Wed, 21 Oct 2099 07:28:00 GMT"),
    (200, "3600"),
)


def fields_of(*modules: types.ModuleType) -> frozenset[str]:
    """The fields that the records of some modules read: all others are ignored."""
    records = [one for module in modules for one in vars(module).values() if isinstance(one, type)]
    structs = [one for one in records if issubclass(one, msgspec.Struct)]
    return frozenset(field.encode_name for one in structs for field in msgspec.structs.fields(one))


OF_SLURM = fields_of(shapes)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, the document itself first."""
    yield path
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*path, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from places(value, (*path, index))


def spoil(dice: random.Random, document: Any, times: int, fields: Collection[object]) -> Any:
    """A copy in which some places are not as they were, most of them among these fields."""
    spoiled = copy.deepcopy(document)
    for _ in range(times):
        every = [path for path in places(spoiled) if path]
        read = [path for path in every if path[-1] in fields]
        chosen = dice.choice(read if read and generators.chance(dice, 0.8) else every or [()])
        if chosen:
            _spoil_one(dice, spoiled, chosen)
    return spoiled


def _spoil_one(dice: random.Random, document: Any, path: tuple[Any, ...]) -> None:
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    last = path[-1]
    acts: Sequence[tuple[float, Callable[[], object]]] = (
        # A copy: what is spoiled again inside it must not be in another place, nor in another case, nor in itself.
        (5.0, lambda: holder.__setitem__(last, copy.deepcopy(dice.choice(ODD)))),
        (2.0, lambda: holder.__delitem__(last)),
        (1.0, lambda: holder.__setitem__(last, [holder[last]])),
        (1.0, lambda: holder.__setitem__(last, {"x": holder[last]})),
        (1.0, lambda: holder.__setitem__(last, str(holder[last])[:500])),
        (1.0, lambda: holder.__setitem__(last, generators.anything(dice, 3))),
        (0.5, lambda: holder.__setitem__(last, _twice(holder[last]))),
    )
    generators.one(dice, *acts)


def _twice(value: Any) -> Any:
    return [*value, *value] if isinstance(value, list) else value


def encode(document: Any) -> bytes:
    """As JSON, with numbers that no encoder writes."""
    body = msgspec.json.encode(document, enc_hook=str)
    return functools.reduce(lambda found, word: found.replace(*word), _WORDS, body)


_WORDS: Sequence[tuple[bytes, bytes]] = (
    (f'"{_DIGITS}"'.encode(), b"9" * 4400),
    (f'"{_DEEP}"'.encode(), b'{"a":' * 300 + b"1" + b"}" * 300),
    (f'"{_WIDE}"'.encode(), b"[" + b"0," * 50_000 + b"0]"),
)


def misspell(dice: random.Random, document: Any) -> bytes:
    """With bytes that are no UTF-8 in one text."""
    texts = [path for path in places(document) if path and isinstance(_at(document, path), str)]
    spoiled = copy.deepcopy(document)
    if texts:
        path = dice.choice(texts)
        _at(spoiled, path[:-1])[path[-1]] = "@@bytes@@"
    odd = dice.choice((b"caf\xe9", b"\xff\xfe", b"\xc3(", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"))
    return encode(spoiled).replace(b"@@bytes@@", odd)


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def damage(dice: random.Random, body: bytes) -> bytes:
    """The bytes themselves."""
    cut = dice.randrange(len(body) + 1)
    return generators.one(
        dice,
        (3.0, lambda: body[:cut]),
        (2.0, lambda: body[:cut] + bytes([dice.randrange(256)]) + body[cut + 1 :]),
        (1.0, lambda: body[:cut] + body[max(0, cut - 20) :]),
        (1.0, lambda: body + body),
        (1.0, lambda: b""),
        (1.0, lambda: b"null"),
        (1.0, lambda: b"[]"),
        (1.0, lambda: b"{}"),
        (1.0, lambda: b"<html><body>502 Bad Gateway</body></html>"),
        (1.0, lambda: b"[" * 60_000),
        (0.5, lambda: b'{"jobs":' * 20_000),
        (1.0, lambda: b"\xff\xfe" + body),
        (1.0, lambda: b'"' + b"9" * 5000 + b'"'),
        (1.0, lambda: b"9" * 5000),
    )
