"""Which values users may set by annotation, by namespace and service account, and which defaults they get.

What an annotation can reach is refused unless a rule allows it: the user of the job, its account, its priority.
All rules that match count together; of the defaults the first rule that names one. Partitions are free until a rule
that matches lists them, except those that Slurm opens to root and SlurmUser only: the operator's token is let into
these, so a rule has to name them.

One job has one user and one account. A gang whose pods run under several service accounts gets no more than each of
them has: every one has to be allowed a value, and their defaults have to agree.
"""

import fnmatch
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import pydantic

from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.hooks.base import GO, Admit, Ask, Fields, Mode, Session
from slurm_bridge.model import texts
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import Partition
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import annotations, forms
from slurm_bridge.translate.forms import ValueForm
from slurm_bridge.translate.translator import Value

Key = Literal["account", "qos", "reservation", "wckey", "user-id", "group-id", "priority", "partition"]

#: Free until a rule lists it.
PARTITION = "partition"

_Glob = Annotated[str, pydantic.Field(min_length=1)]


NOTHING = Fields()

_EVERY = ("*",)


class AtMost(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Every whole number up to this one."""

    max: Annotated[int, pydantic.Field(ge=1, le=4294967294)]

    def permits(self, value: str) -> bool:
        return value.isascii() and value.isdigit() and int(value) <= self.max

    def __str__(self) -> str:
        return f"at most {self.max}"


class AnyOf(pydantic.RootModel[tuple[_Glob, ...]], frozen=True):
    """Names, or patterns with `*` and `?`."""

    def permits(self, value: str) -> bool:
        return any(fnmatch.fnmatchcase(value, glob) for glob in self.root)

    def lists(self, value: str) -> bool:
        """A pattern speaks of it that does not mean everything."""
        return any(fnmatch.fnmatchcase(value, glob) for glob in self.root if glob.strip("*"))

    def __str__(self) -> str:
        return ", ".join(self.root)


def _form(form: ValueForm) -> pydantic.AfterValidator:
    """The value obeys the form of the annotation that it stands in for."""

    def check(value: str | None) -> str | None:
        if value is None:
            return None
        try:
            return str(form.parse(value))
        except ValueError:
            raise ValueError(f"{texts.shown(value)!r} is refused: use {form.words}") from None

    return pydantic.AfterValidator(check)


def _pattern(text: str | None) -> str | None:
    try:
        re.compile(text or "")
    except re.error as wrong:
        raise ValueError(f"{texts.shown(text or '')!r} is no regular expression: {wrong}") from None
    return text


_Name = Annotated[str | None, _form(forms.NAME)]
_Person = Annotated[str | None, _form(forms.PERSON)]


class PolicyDefaults(pydantic.BaseModel, frozen=True, extra="forbid", coerce_numbers_to_str=True):
    """What the request gets where the user has said nothing; the forms are those of the annotations."""

    partition: Annotated[str | None, _form(forms.NAMES)] = None
    account: _Name = None
    qos: _Name = None
    reservation: _Name = None
    wckey: _Name = None
    constraints: Annotated[str | None, _form(forms.FEATURES)] = None
    licenses: Annotated[str | None, _form(forms.LICENSES)] = None
    user: _Person = None
    group: _Person = None


class PolicyRule(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Users, what they may set, and the defaults that they get."""

    namespaces: tuple[_Glob, ...] = ("*",)
    """Patterns of the namespaces to which the rule applies."""
    service_accounts: tuple[_Glob, ...] = ("*",)
    """Patterns of the service accounts that pods run under."""
    users: tuple[_Glob, ...] = ("*",)
    """Patterns of the users that created the workloads. Anything but `*` needs `admission.trust_created_by`."""
    groups: tuple[_Glob, ...] = ("*",)
    """Patterns of groups; such a user has to be in one. Anything but `*` needs `admission.trust_created_by`."""
    allow: Mapping[Key, AtMost | AnyOf] = {}
    """By annotation, the patterns of allowed values; for `priority` also `{max: 1000}`."""
    defaults: PolicyDefaults = PolicyDefaults()
    """Values of workloads whose users set none."""
    job_user: Annotated[str | None, pydantic.AfterValidator(_pattern)] = None
    """A regular expression for the whole name of the user that created the workload, for example `oidc:(.*)`. Its \
first group, or all of it, is the user of the job unless `defaults.user` of this rule or an annotation names one. \
Numbers and names of system accounts are left out."""

    @pydantic.field_validator("allow")
    @classmethod
    def _only_priority_is_a_number(cls, allow: Mapping[Key, AtMost | AnyOf]) -> Mapping[Key, AtMost | AnyOf]:
        for key, allowed in allow.items():
            if isinstance(allowed, AtMost) and key != "priority":
                raise ValueError(f"{key} takes a list of names; only priority takes max")
        return allow

    def matches(self, whom: "Whom") -> bool:
        """Whether the rule is for these pods; `*` also means those whose creator is not known."""
        return (
            _any(self.namespaces, whom.namespace)
            and _any(self.service_accounts, whom.account)
            and (self.users == _EVERY or (whom.user != "" and _any(self.users, whom.user)))
            and (self.groups == _EVERY or any(_any(self.groups, group) for group in whom.groups))
        )

    def given(self, whom: "Whom") -> Mapping[str, str]:
        """The defaults for these pods."""
        defaults: dict[str, str] = self.defaults.model_dump(exclude_none=True)
        if self.job_user is None or "user" in defaults:
            return defaults
        found = re.fullmatch(self.job_user, whom.user)
        name = str((found[1] if found.re.groups else found[0]) or "") if found else ""
        return {**defaults, "user": name} if _is_person(name) else defaults


class Whom(NamedTuple):
    """The namespace and service account under which a pod runs, and the user that created it, as far as that counts."""

    namespace: str
    account: str
    user: str = ""
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f", created by {texts.bounded(self.user, 100)}" if self.user else ""
        return f"service account {self.account} in namespace {self.namespace}{by}"


class PolicyOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """The rules; given, they replace the shipped one, with which the shipped example runs."""

    rules: tuple[PolicyRule, ...] = (PolicyRule(namespaces=("slurm-bridge",), allow={"account": AnyOf(("schedmd",))}),)
    """All rules that match the namespace and the service account are combined."""


class Policy:
    """Refuses what no rule allows, and fills in what rules give."""

    Options: ClassVar = PolicyOptions
    #: Equal pods get equal answers for as long as the version of the cluster stands.
    steady: ClassVar = True
    #: No field that it gives is about sharing nodes.
    keeps_exclusive: ClassVar = True

    def __init__(self, options: PolicyOptions) -> None:
        self._rules = options.rules
        self._fields: VersionCache[Whom, Mapping[str, str]] = VersionCache()

    def admit(self, session: Session, ask: Ask) -> Admit | Reject | Wait:
        """Every refusal at once, so that a user can correct all of them together."""
        workload = ask.workload
        first, *others = list(dict.fromkeys([_of_pod(workload, pod) for pod in workload.pods])) or [_first(workload)]
        partition = next((value for value in ask.values if value.key == PARTITION), None)
        # A run without effects may have no Slurm to ask.
        if partition is not None and not session.snapshot.partitions and session.mode is Mode.REAL:
            return Wait(reason="SlurmUnavailable", message="Slurm has not reported its partitions yet")
        wrong = [
            refusal for value in ask.values for whom in (first, *others) if (refusal := self._refusal(whom, value))
        ]
        if partition is not None:
            wrong += self._closed((first, *others), partition, session.snapshot.partitions)
        for other in others:
            wrong += self._disagreements(first, other, _said(ask))
        return Reject(reason="NotAllowed", message="; ".join(wrong)) if wrong else GO

    def express(self, _session: Session, ask: Ask) -> Fields:
        """Annotations win over these, these win over the defaults of the bridge."""
        chosen = self._defaults(_first(ask.workload))
        if not chosen:
            return NOTHING
        said = _said(ask)
        given: dict[str, Any] = {field: value for field, value in chosen.items() if field not in said}
        return Fields(**given, source="hook policy")

    def _defaults(self, whom: Whom) -> Mapping[str, str]:
        return self._fields.get(0, whom, lambda: self._work_out(whom))

    def _work_out(self, whom: Whom) -> Mapping[str, str]:
        """The first rule that names a field decides on it."""
        chosen: dict[str, str] = {}
        for rule in self._of(whom):
            chosen = {**rule.given(whom), **chosen}
        return chosen

    def _disagreements(self, one: Whom, other: Whom, said: Collection[str]) -> Iterator[str]:
        """Fields in which the rules' defaults for two members differ, unless the user has said which it is."""
        mine, theirs = self._defaults(one), self._defaults(other)
        for field in sorted((mine.keys() | theirs.keys()).difference(said)):
            if mine.get(field) != theirs.get(field):
                values = f"{_shown(mine.get(field))} for {one}, {_shown(theirs.get(field))} for {other}"
                yield f"members have different defaults for {field}: {values}; one job can have only one"

    def _closed(self, everybody: Sequence[Whom], value: Value, partitions: Sequence[Partition]) -> Iterator[str]:
        """Partitions of root that no matching rule names; each one of a list may become the job's."""
        closed = {one.name for one in partitions if one.root_only}
        for name in (part.strip() for part in value.value.split(",")):
            for whom in everybody if name in closed else ():
                allowed = [rule.allow["partition"] for rule in self._of(whom) if "partition" in rule.allow]
                if not any(isinstance(one, AnyOf) and one.lists(name) for one in allowed):
                    words = "is RootOnly in Slurm, and no rule of the policy names it"
                    yield f"{value.source}: partition {name!r} {words} for {whom}"

    def _of(self, whom: Whom) -> Iterator[PolicyRule]:
        return (rule for rule in self._rules if rule.matches(whom))

    def _refusal(self, whom: Whom, value: Value) -> str | None:
        """Why a value is refused, None when it is not the user's or may be set."""
        if value.key not in annotations.GUARDED and value.key != PARTITION:
            return None
        permits = [allowed for rule in self._of(whom) for key, allowed in rule.allow.items() if key == value.key]
        if value.key == PARTITION and not permits:
            return None
        names = value.value.split(",") if value.key == PARTITION else [value.value]
        if all(any(allowed.permits(name.strip()) for allowed in permits) for name in names):
            return None
        allowed_here = f"allowed here: {', '.join(map(str, permits))}" if permits else "no value is allowed"
        return (
            f"{value.source}: {value.key} {texts.bounded(value.value, 100)!r} is not allowed for {whom}; {allowed_here}"
        )


def _first(workload: Workload) -> Whom:
    """The first member's."""
    if workload.pods:
        return _of_pod(workload, workload.lead)
    return Whom(workload.root.namespace, workload.service_account)


def _of_pod(workload: Workload, pod: Pod) -> Whom:
    made_by = workload.creator_of(pod)
    user, groups = ("", ()) if made_by is None else (made_by.user, made_by.groups)
    return Whom(pod.metadata.namespace, pod.spec.service_account_name or "default", user, groups)


def _is_person(name: str) -> bool:
    """The name may be that of the user of a job. A number is none: its owner is another user in Slurm."""
    try:
        return not name.isdigit() and bool(forms.PERSON.parse(name))
    except ValueError:
        return False


def _said(ask: Ask) -> Collection[str]:
    """The fields that the user has filled by annotation."""
    return {value.field for value in ask.values if value.key}


def _shown(value: str | None) -> str:
    return "none" if value is None else repr(value)


def _any(globs: tuple[str, ...], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)
