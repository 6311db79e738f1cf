"""The owner record: what the bridge writes into a placeholder job so that anybody can tell whose it is.

It travels in `admin_comment`, which only an operator can write; `comment` is open to every Slurm user and therefore
never evidence. Reading is strict: JSON that merely looks similar belongs to somebody else.
"""

import msgspec

#: Marks the record as ours; a later incompatible layout gets a new value.
MARK = "slurm-bridge/1"

#: Accounting keeps more, but a short record keeps full job lists readable.
MOST_BYTES = 2048


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which incarnation of which workload a placeholder stands for.

    `request` is a digest of what was asked for and `plan` says which attempt at which nodes it was, so that a restart
    sees what has changed since and goes on where it was. `note` is the last word on an ended job. `reserved` says
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
        """Both speak of the same object, whatever the attempt."""
        return (self.cluster, self.kind, self.uid) == (other.cluster, other.kind, other.uid)


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mark: str
    owner: Owner


_decoder = msgspec.json.Decoder(_Stored)


def write(owner: Owner) -> str:
    """The record as one line of JSON; raises ValueError when it would not fit."""
    text = msgspec.json.encode(_Stored(mark=MARK, owner=owner)).decode()
    if len(text.encode()) > MOST_BYTES:
        raise ValueError(f"owner record of {owner.kind} {owner.namespace}/{owner.name} exceeds {MOST_BYTES} bytes")
    return text


def read(text: str) -> Owner | None:
    """The owner, or None when the text is not exactly a record of ours."""
    try:
        stored = _decoder.decode(text)
    except (msgspec.DecodeError, ValueError):
        return None
    return stored.owner if stored.mark == MARK else None
