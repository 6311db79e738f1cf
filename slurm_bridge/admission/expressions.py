"""The forms of annotation values as CEL: an expression over `v`, the text without blanks around it, for each form.

Each is true for just the texts that the parser of the form takes, but for lists of more than 64 generic resources; a
test tries both on the same texts. CEL counts letters as Python does, its regular expressions are those of RE2, and a
number of more than 19 digits is an error to it.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from slurm_bridge.translate import forms, gres
from slurm_bridge.translate.forms import ValueForm


def literal(value: object) -> str:
    """A text, or a list or map of texts, as CEL writes it."""
    return json.dumps(value, ensure_ascii=False)


def matches(pattern: str) -> str:
    """The whole text has this form."""
    return f"v.matches({literal(f'^(?:{pattern})$')})"


def whole(least: int, most: int) -> str:
    """A base-10 integer of at most 20 digits."""
    return f"({matches('[0-9]{1,20}')} && {matches('0*[0-9]{1,10}')} && int(v) >= {least} && int(v) <= {most})"


_NAME: Final = "[A-Za-z0-9_][A-Za-z0-9_.@:+-]{0,254}"
_QUANTITY: Final = r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?"
_POSITIVE: Final = f'{matches(_QUANTITY)} && isQuantity(v) && quantity(v).isGreaterThan(quantity("0"))'

#: Name and type of a generic resource, and its count; a type is not a number.
_KIND: Final = "[A-Za-z_][A-Za-z0-9_.-]{0,63}(?::[0-9.-]*[A-Za-z_][A-Za-z0-9_.-]*)?"
#: Each is compared with all others.
MOST_GRES: Final = 64
_PREFIX: Final = "[Gg][Rr][Ee][Ss]"


def _gres() -> str:
    """Each part of the list is `p`, and `b` without its prefix; what is in front of its count is there once."""
    bare = f'(p.matches("^{_PREFIX}[/:][A-Za-z_]") ? p.substring(5) : p)'
    form = f'p.matches("^(?:(?:{_PREFIX}[/:])?{_KIND}(?::[0-9]{{1,10}})?|{_PREFIX}[/:]{_KIND}=[0-9]{{1,10}})$")'
    last = 'b.contains("=") ? b.lastIndexOf("=") : b.lastIndexOf(":")'
    number = f"[{last}].all(i, int(b.substring(i + 1)) >= 1 && int(b.substring(i + 1)) <= {gres.MOST_COUNT})"
    counted = f'(!b.matches("[:=][0-9]{{1,10}}$") || {number})'
    types = 'b.split(":").all(s, size(s.split("=")[0]) <= 64)'
    each = f"ps.all(p, {form} && [{bare}].all(b, {counted} && {types}))"
    kind = f'[{bare}].map(b, (b.matches("[:=][0-9]{{1,10}}$") ? b.substring(0, {last}) : b).lowerAscii())[0]'
    once = f"[ps.map(p, {kind})].all(ks, ks.all(k, ks.filter(j, j == k).size() == 1))"
    few = f'size(v.split(",")) <= {MOST_GRES}'
    return f'(v.lowerAscii() == "none" || ({few} && [v.split(",").map(q, q.trim())].all(ps, {each} && {once})))'


def _one_of(words: Iterable[str]) -> str:
    return f"v.lowerAscii() in {literal(list(words))}"


def _person() -> str:
    number = whole(forms.FIRST_USER, forms.MOST)
    name = (
        f"{matches('[A-Za-z_][A-Za-z0-9_.@-]{0,63}')} && !(v.lowerAscii() in {literal(sorted(forms.SYSTEM_NAMES))})"
        ' && !v.lowerAscii().startsWith("systemd-")'
    )
    return f'(v.matches("^[0-9]") ? {number} && int(v) != 65534 : {name})'


def _text(letters: str, most: int) -> str:
    return f"(size(v) <= {most} && {matches(f'{letters}+')})"


FORMS: Final[Mapping[ValueForm, str]] = {
    forms.NAME: matches(_NAME),
    forms.NAMES: f'v.split(",").all(p, p.trim().matches({literal(f"^{_NAME}$")}))',
    forms.BOOLEAN: _one_of(("true", "false")),
    forms.MEMBER_LOST: _one_of(forms.MEMBERS_LOST),
    forms.ENVIRONMENT: _one_of(forms.ENVIRONMENTS),
    forms.PERSON: _person(),
    forms.PRINTABLE: _text(r"(?:[^\pC\pZ]| )", forms.MOST_LETTERS),
    forms.CPUS: f"({_POSITIVE} && quantity(v).compareTo(quantity({literal(str(forms.MOST_SHORT))})) <= 0)",
    forms.MEMORY: f"({_POSITIVE})",
    forms.GRES: _gres(),
    forms.FEATURES: _text(r"[A-Za-z0-9_.:/@=+&|,*!()\[\]-]", 1024),
    forms.LICENSES: _text("[A-Za-z0-9_.:/@=+|&,;()*-]", 1024),
    forms.MINUTES: whole(1, forms.MOST_MINUTES),
    forms.COUNT: whole(1, forms.MOST),
    forms.PRIORITY: whole(1, forms.MOST_PRIORITY),
}
