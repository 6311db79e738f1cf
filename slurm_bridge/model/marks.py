"""The owner record: what the bridge writes into a placeholder job to name the workload that it stands for.

It travels in `admin_comment`, which only an operator can write; `comment` is open to every Slurm user and therefore
never evidence. Reading is strict: a text that merely looks similar is not ours.

    slurm-bridge/1 {"cluster":…,"kind":…}                   as it is written
    {"mark":"slurm-bridge/1","owner":{"cluster":…,…}}       as earlier versions wrote it, still understood

The text as a whole is no JSON: other programs on the same Slurm take every job with JSON in its `admin_comment` for one
of theirs, and cancel it when they find no pods of theirs in it.
"""

import sys

import msgspec

from slurm_bridge.model.names import WorkloadKey, workload_key

#: Marks the record as ours; a later incompatible layout gets a new value.
MARK = "slurm-bridge/1"

#: Accounting keeps more, but a short record keeps full job lists readable.
MOST_BYTES = 2048
#: How many of these are kept for the note: no job is cancelled without the reason in it.
ROOM_FOR_NOTE = 100
#: A longer text is not ours. It is not decoded, because other programs may write anything there.
_MOST_LETTERS = 4 * MOST_BYTES


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which incarnation of which workload a placeholder stands for.

    `request` is a digest of what was asked for and `plan` names the attempt and its nodes, so that a restart sees
    what has changed since and goes on from there. `note` is why the job was ended. `reserved` says
    which nodes are kept for it while it waits, and until when.
    """

    cluster: str
    kind: str
    namespace: str
    name: str
    uid: str
    members: str = ""
    attempt: int = 0
    request: str = ""
    plan: str = ""
    note: str = ""
    reserved: str = ""

    def same_workload(self, other: "Owner") -> bool:
        """Both name the same workload; attempts may differ."""
        return self.cluster == other.cluster and self.key == other.key

    @property
    def key(self) -> WorkloadKey:
        """The key of the workload, as in `Root.key`."""
        return workload_key(self.kind, self.namespace, self.name, self.uid)


class _Former(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mark: str
    owner: Owner


_START = f"{MARK} "
#: What is around a note, and the most that JSON makes of one letter of it.
_NOTE_FIELD, _BYTES_OF_A_LETTER = len(',"note":""'), 6
_owners = msgspec.json.Decoder(Owner)
_formers = msgspec.json.Decoder(_Former)


def write(owner: Owner) -> str:
    """The record as one line, its note cut off where it would not fit; ValueError when all else would not."""
    room = MOST_BYTES - len(_START.encode()) - len(msgspec.json.encode(msgspec.structs.replace(owner, note="")))
    if room < ROOM_FOR_NOTE:
        raise ValueError(f"owner record of {owner.kind} {owner.namespace}/{owner.name} exceeds {MOST_BYTES} bytes")
    text = msgspec.json.encode(owner)
    if len(_START.encode()) + len(text) > MOST_BYTES:
        note = owner.note[: (room - _NOTE_FIELD) // _BYTES_OF_A_LETTER]
        text = msgspec.json.encode(msgspec.structs.replace(owner, note=note))
    return _START + text.decode()


def read(text: str) -> Owner | None:
    """The owner, or None when the text is not exactly a record of ours."""
    if len(text) > _MOST_LETTERS:
        return None
    try:
        if text.startswith(_START):
            return _sharing(_owners.decode(text.removeprefix(_START)))
        former = _formers.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return _sharing(former.owner) if former.mark == MARK else None


def _sharing(owner: Owner) -> Owner:
    """The same record; thousands of them have these words in common, and each word is one object."""
    for field in ("cluster", "kind", "namespace"):
        msgspec.structs.force_setattr(owner, field, sys.intern(getattr(owner, field)))
    return owner
