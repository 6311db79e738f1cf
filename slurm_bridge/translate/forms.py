"""The forms of annotation values: what is allowed in words, and the parser that allows exactly that.

Words and parser stand together, so that error messages and the documentation agree with the code. Values arrive
without surrounding blanks; a parser raises ValueError for every value that its words do not allow.
"""

import dataclasses
import re
from collections.abc import Callable

from slurm_bridge.model import quantity
from slurm_bridge.model.job import Memory
from slurm_bridge.translate import gres

#: Slurm's 32-bit numbers end in two values with a meaning of their own (unset, endless).
MOST = 4_294_967_293

#: Likewise for its 16-bit ones.
MOST_SHORT = 65_533

#: In seconds these still fit 32 bits; one minute more and Slurm ends the job within the minute.
MOST_MINUTES = 71_582_788

#: The largest that may be asked for. It means "unset" to Slurm, so the next one below is sent.
MOST_PRIORITY = 4_294_967_294

#: Below are the accounts of the system itself.
FIRST_USER = 1000

#: Root, Slurm's SLURM_AUTH_NOBODY, and the account "nobody": no person's jobs run as one of them.
_NOT_A_PERSON = frozenset({0, 99, 65534})

#: Accounts and groups of operating systems and of Slurm's own services, whatever their numbers are on some machine.
SYSTEM_NAMES: frozenset[str] = frozenset(
    "root toor nobody nogroup nfsnobody slurm slurmctld slurmdbd slurmrestd munge daemon bin sys sync games man lp mail"
    " news uucp proxy www-data backup list irc gnats _apt adm shutdown halt operator ftp dbus messagebus polkitd sshd"
    " ntp chrony _chrony rpc rpcuser statd tss tcpdump named bind ldap nslcd sssd systemd mysql mariadb postgres redis"
    " memcache memcached mongodb apache nginx http etcd kube kubelet containerd docker podman libvirt kvm qemu wheel"
    " sudo disk kmem tty shadow utmp dialout".split()
)
_SYSTEM_NAME_BEGINS = "systemd-"

_DIGITS = re.compile(r"[0-9]{1,20}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:+-]{0,254}")
_PERSON = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]{0,63}")
_FEATURES = re.compile(r"[A-Za-z0-9_.:/@=+&|,*!()\[\]-]{1,1024}")
_LICENSES = re.compile(r"[A-Za-z0-9_.:/@=+|&,;()*-]{1,1024}")

MOST_LETTERS = 255

MEMBERS_LOST = ("keep", "restart-group")

ENVIRONMENTS = ("true", "false", "torch")


@dataclasses.dataclass(frozen=True, slots=True)
class ValueForm:
    """What is allowed, in words that follow "use", and the parser."""

    words: str
    parse: Callable[[str], object]


def integer(least: int, most: int = MOST, what: str = "a whole number") -> ValueForm:
    """A base-10 integer; signs, fractions and other bases are errors."""
    return ValueForm(f"{what} from {least} to {most}", lambda text: _integer(text, least, most))


def _integer(text: str, least: int, most: int) -> int:
    number = int(_matched(_DIGITS, text))
    if not least <= number <= most:
        raise ValueError(f"{number} is not from {least} to {most}")
    return number


def _matched(grammar: re.Pattern[str], text: str) -> str:
    if grammar.fullmatch(text) is None:
        raise ValueError(f"{text[:60]!r} has another form")
    return text


def _name(text: str) -> str:
    return _matched(_NAME, text)


def _names(text: str) -> str:
    """Names without duplicates, which Slurm would keep."""
    return ",".join(dict.fromkeys(_name(part.strip()) for part in text.split(",")))


def _boolean(text: str) -> bool:
    words = {"true": True, "false": False}
    if text.lower() not in words:
        raise ValueError(f"{text[:60]!r} is neither")
    return words[text.lower()]


def _one_of(words: tuple[str, ...], text: str) -> str:
    if text.lower() not in words:
        raise ValueError(f"{text[:60]!r} is none of them")
    return text.lower()


def _person(text: str) -> str:
    if not _DIGITS.fullmatch(text):
        if text.lower() in SYSTEM_NAMES or text.lower().startswith(_SYSTEM_NAME_BEGINS):
            raise ValueError(f"{text[:60]!r} is a system account")
        return _matched(_PERSON, text)
    number = int(text)
    if not ordinary(number):
        raise ValueError(f"{number} is no ordinary number")
    return str(number)


def ordinary(number: int) -> bool:
    """Whether this number can be that of a person, or of a group of persons."""
    return number not in _NOT_A_PERSON and FIRST_USER <= number <= MOST


def _printable(text: str) -> str:
    if not 1 <= len(text) <= MOST_LETTERS or not text.isprintable():
        raise ValueError("not printable, or too long")
    return text


def _priority(text: str) -> int:
    return min(_integer(text, 1, MOST_PRIORITY), MOST)


def _cpus(text: str) -> int:
    number = quantity.whole(quantity.parse(text))
    if not 1 <= number <= MOST_SHORT:
        raise ValueError(f"{number} cpus")
    return number


def _memory(text: str) -> Memory:
    mib = quantity.mebibytes(quantity.parse(text))
    if mib < 1:
        raise ValueError(f"{mib} MiB")
    return Memory(mib=mib)


NAME = ValueForm("a name of letters, digits and _ . @ : + - with at most 255 characters", _name)
NAMES = ValueForm("a name, or a comma list of names, of letters, digits and _ . @ : + -", _names)
BOOLEAN = ValueForm("true or false", _boolean)
MEMBER_LOST = ValueForm(" or ".join(MEMBERS_LOST), lambda text: _one_of(MEMBERS_LOST, text))
ENVIRONMENT = ValueForm("true, false or torch", lambda text: _one_of(ENVIRONMENTS, text))
PERSON = ValueForm(
    f"a name other than those of system accounts (root, slurm, daemon, ...), or a number from {FIRST_USER} to {MOST}"
    " except 65534",
    _person,
)
PRINTABLE = ValueForm(f"1 to {MOST_LETTERS} printable characters", _printable)
CPUS = ValueForm(f"a Kubernetes quantity that rounds up to 1 to {MOST_SHORT} cpus, such as 2 or 500m", _cpus)
MEMORY = ValueForm("a Kubernetes quantity of at least 1 MiB after rounding up to MiB, such as 8Gi", _memory)
GRES = ValueForm(
    "a comma list of name[:type][:count] with counts of at least 1 and each resource once, such as gpu:v100:2 or"
    " gres/gpu=2, or none",
    gres.parse,
)
FEATURES = ValueForm("a Slurm feature expression without blanks or quotes", lambda text: _matched(_FEATURES, text))
LICENSES = ValueForm("a Slurm license expression without blanks or quotes", lambda text: _matched(_LICENSES, text))
MINUTES = integer(1, MOST_MINUTES, "a whole number of minutes")
COUNT = integer(1)
PRIORITY = ValueForm(f"a whole number from 1 to {MOST_PRIORITY}", _priority)
