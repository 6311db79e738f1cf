"""What administrators of the queues may ask for: the configuration in force, and whether another could take its place.

The root's `adminacl` names them. Nothing here changes anything: a configuration comes from its storage alone, by
the way that all configurations of the daemon come.
"""

import dataclasses
from collections.abc import Sequence

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn import files, node_sorts, people, setup
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.queues import acl
from slurm_bridge.families.yunikorn.queues.config import parser, validation
from slurm_bridge.families.yunikorn.queues.config.problems import ConfigurationRefused
from slurm_bridge.families.yunikorn.setup import Setup
from slurm_bridge.hooks.services import CarriedState


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """A configuration as it was read; `file` is empty where it stands in the daemon's own."""

    version: str
    since: float
    file: str
    mode: str
    partition: str
    text: str


class QueueAdmin:
    """Of one configuration. Safe to use from any thread.

    It is refused where it cannot take the place of the one in force; one that is the same has been there all the time.
    """

    def __init__(self, made: Setup, carried: CarriedState) -> None:
        self._carried = carried
        self._check(made)
        before = self._before()
        same = before is not None and before.setup.text == made.text
        self.setup = dataclasses.replace(made, since=before.setup.since) if before is not None and same else made
        #: Warnings that were not there before.
        self.news = () if same else made.warnings

    def may(self, name: str, groups: Sequence[str]) -> bool:
        """Whether the user with this name and these groups, as the API server knows them, administers the root."""
        user, theirs = people.caller(name, groups, self.setup.options.users)
        return acl.read(self.setup.written.root.admin_acl).allows(user, theirs)

    @property
    def in_force(self) -> InForce:
        """What is decided by."""
        options = self.setup.options
        return InForce(
            version=files.version(self.setup.text),
            since=self.setup.since,
            file=options.file,
            mode=options.mode,
            partition=options.partition,
            text=self.setup.text,
        )

    @property
    def stored(self) -> tuple[str, str, str] | None:
        """The file, its version as it was read and as it is now; None where there is no file."""
        name = self.setup.options.file
        if not name:
            return None
        try:
            now = files.version(files.text(name))
        except BadConfiguration as error:
            now = str(error)
        return name, files.version(self.setup.text), now

    def problems(self, body: bytes) -> tuple[str, ...]:
        """All that keeps this from taking the place of the one in force; Unreadable where it is no YAML."""
        found = self.mistakes(body)
        if found:
            return found
        options = self.setup.options.model_copy(update={"configuration": files.handed_in(body), "file": ""})
        try:
            return self.against(setup.make(options))
        except BadConfiguration as error:
            return tuple(str(error).splitlines())

    def mistakes(self, body: bytes) -> tuple[str, ...]:
        """What is wrong with it as it is written; Unreadable where it is no YAML."""
        options = self.setup.options
        parsed = validation.registered(parser.parse(files.handed_in(body)), node_sorts.load(options.node_sorts))
        return tuple(map(str, validation.problems(parsed, one_place=options.one_place)))

    def against(self, made: Setup) -> tuple[str, ...]:
        """Why this cannot follow the one in force: queues are in use that would become something else."""
        try:
            self._check(made)
        except ConfigurationRefused as refused:
            return tuple(map(str, refused.problems))
        return ()

    def warnings(self, body: bytes) -> tuple[str, ...]:
        """What of this would be ignored; Unreadable where it is no YAML."""
        return tuple(map(str, parser.parse(files.handed_in(body)).document.warnings))

    def _check(self, made: Setup) -> None:
        before = self._before()
        if before is not None:
            before.engine.check(made)

    def _before(self) -> Manager | None:
        """The queues as they are, where this process has any."""
        found = self._carried.value
        return found if isinstance(found, Manager) else None
