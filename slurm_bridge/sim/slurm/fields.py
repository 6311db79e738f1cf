"""How slurmrestd reads the JSON of a job: lenient in surprising places, and strict elsewhere.

wrong                                     what it does
----------------------------------------  --------------------------------------------------------------
unknown field                             ignored, with a warning
a number written as text                  read, with a warning
text that is no number, in a number       200 with a warning, and *nothing* is done (`ReadFields.void`)
an object instead of text                 500 with 9202
an unknown flag                           500 with 9207, and the job is created all the same
"""

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.model import hostlist
from slurm_bridge.sim.slurm import replies

#: Field -> how it is read. Fields without a use here are read as anything, so that they are not "unknown".
_TEXTS = (
    "account admin_comment array comment constraints current_working_directory dependency extra group_id licenses"
    " mcs_label memory_per_tres name partition prefer qos reservation script tres_per_job tres_per_node tres_per_task"
    " user_id wckey nodes"
)
_INTEGERS = "cpus_per_task job_id maximum_nodes minimum_cpus minimum_nodes nice tasks tasks_per_node wait_for_switch"
_NUMBERS = "begin_time memory_per_cpu memory_per_node priority segment_size time_limit"
_YES_NO = "hold immediate kill_on_node_fail"
_LISTS = "excluded_nodes required_nodes"
_FLAGS = {
    "flags": (
        "KILL_INVALID_DEPENDENCY NO_KILL_INVALID_DEPENDENCY HAS_STATE_DIRECTORY TESTING_BACKFILL SPREAD_JOB"
        " TOP_PRIO_TMP ACCRUE_OVER ACCRUE_COUNT_CLEARED EXTERNAL_JOB PREFER_MINIMUM_NODE_COUNT CRON_JOB"
        " NO_KILL_ON_INV_DEP GRES_ENFORCE_BINDING GRES_ALLOW_TASK_SHARING GRES_ONE_TASK_PER_SHARING"
        " GRES_MULT_TASKS_PER_SHARING"
    ),
    "shared": "none oversubscribe user mcs topo",
}
_ANYTHING = (
    "account_gather_frequency allocation_node_list allocation_node_port argv batch_features burst_buffer clusters"
    " cluster_constraint contiguous container container_id core_specification thread_specification cpu_binding"
    " cpu_binding_flags cpu_frequency cpus_per_tres crontab deadline delay_boot distribution distribution_plane_size"
    " end_time environment hetjob_group mail_type mail_user maximum_cpus memory_binding memory_binding_type"
    " minimum_boards_per_node minimum_cpus_per_node minimum_sockets_per_board network ntasks_per_tres oom_kill_step"
    " open_mode overcommit profile reboot requeue required_switches reserve_ports rlimits selinux_context"
    " site_factor sockets_per_node spank_environment standard_error standard_input standard_output tasks_per_board"
    " tasks_per_core tasks_per_socket temporary_disk_per_node threads_per_core time_minimum tres_bind"
    " tres_freq tres_per_socket wait_all_nodes x11 x11_magic_cookie x11_target_host x11_target_port"
    " kill_warning_delay kill_warning_flags kill_warning_signal"
)
#: Fields that only some versions know.
_SINCE = {
    "step_id": "v0.0.44",
    "container_type": "v0.0.45",
    "cores_per_socket": "v0.0.45",
    "memory_update_delay": "v0.0.45",
    "memory_update_margin": "v0.0.45",
}
_EXTERNAL_SINCE = "v0.0.43"

_NODE_COUNT = re.compile(r"\d+(-\d+)?")

_KINDS = {
    str: ("string", "string"),
    int: ("integer", "64 bit integer"),
    float: ("number", "floating point number"),
    bool: ("boolean", "boolean"),
    dict: ("object", "dictionary"),
    list: ("array", "list"),
    type(None): ("null", "null"),
}


@dataclasses.dataclass(slots=True)
class ReadFields:
    """The result: values by field name, with warnings and errors."""

    where: str
    version: str
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    warnings: list[replies.Warn] = dataclasses.field(default_factory=list)
    errors: list[replies.Error] = dataclasses.field(default_factory=list)
    void: bool = False

    def expected(self, name: str, openapi: str, slurm: str, value: Any) -> None:
        """The usual warning about a wrong type."""
        kind = _KINDS[type(value)]
        text = json.dumps(value, separators=(",", ":"))
        self.warnings.append(
            replies.Warn(
                f"Expected OpenAPI type={openapi} (Slurm type={slurm}) but got OpenAPI type={kind[0]} "
                f"(Slurm type={kind[1]}): {text}",
                f"{self.where}{name}/",
            )
        )


def read(body: Mapping[str, Any], *, where: str, version: str) -> ReadFields:
    """Read the fields of one job description."""
    reading = ReadFields(where, version)
    for name, value in body.items():
        reader = _READERS.get(name)
        if reader is None or _SINCE.get(name, version) > version:
            kind = _KINDS[type(value)][1]
            text = f'Ignoring unknown field "{name}" of type {kind} in DATA_PARSER_JOB_DESC_MSG'
            reading.warnings.append(replies.Warn(text, f"{where}{name}/"))
        else:
            reader(reading, name, value)
    return reading


def _text(reading: ReadFields, name: str, value: Any) -> None:
    if isinstance(value, (dict, list)):
        reading.expected(name, "string", "string", value)
        reading.void = True
        if name == "nodes":
            kind = _KINDS[type(value)][1]
            text = f"Expected string instead of {kind} for node counts"
            reading.errors.append(replies.Error(9202, text, f"{reading.where}{name}/"))
        return
    if name == "nodes" and not _NODE_COUNT.fullmatch(str(value)):
        reading.errors.append(replies.Error(9202, f'Unknown format: "{value}"', f"{reading.where}{name}/"))
        reading.void = True
    if not isinstance(value, str):
        reading.expected(name, "string", "string", value)
    reading.values[name] = value if isinstance(value, str) else json.dumps(value)


def _integer(reading: ReadFields, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        reading.expected(name, "integer format=int32", "64 bit integer", value)
        value = _cast(value)
    if value is None:
        reading.void = True
    else:
        reading.values[name] = value


def _number(reading: ReadFields, name: str, value: Any) -> None:
    """A number object, or a bare number; None means "no limit"."""
    if isinstance(value, Mapping):
        if value.get("infinite"):
            reading.values[name] = None
        elif value.get("set", True) and "number" in value:
            _integer(reading, name, value["number"])
        return
    if _cast(value) is None:
        text = f"Expected integer but got {json.dumps(value)}"
        reading.errors.append(replies.Error(9202, text, f"{reading.where}{name}/"))
        reading.void = True
        return
    _integer(reading, name, value)


def _yes_no(reading: ReadFields, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        reading.expected(name, "boolean", "boolean", value)
    reading.values[name] = value not in (False, 0, None, "false", "no", "0", "")


def _list(reading: ReadFields, name: str, value: Any) -> None:
    if isinstance(value, str):
        reading.expected(name, "array", "list", value)
        value = [value]
    if isinstance(value, dict):
        reading.expected(name, "array", "list", value)
        value = list(value.values())
    if isinstance(value, list):
        reading.values[name] = [str(item) for item in value]


def _flags(reading: ReadFields, name: str, value: Any) -> None:
    known = set(_FLAGS[name].split())
    if reading.version < _EXTERNAL_SINCE:
        known.discard("EXTERNAL_JOB")
    given = value if isinstance(value, list) else [value]
    for index, flag in enumerate(given):
        if flag not in known:
            text = f'Unknown flag "{flag}"'
            reading.errors.append(replies.Error(9207, text, f"{reading.where}{name}[{index}]/"))
    understood = [flag for flag in given if flag in known]
    # "exclusive" is no such word. The rest of it is read as 0, which happens to mean exclusive.
    reading.values[name] = ["none"] if name == "shared" and given and not understood else understood


def _anything(reading: ReadFields, name: str, value: Any) -> None:
    """Accepted by the real server, without consequence here."""
    reading.values[name] = value


def _cast(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


_READERS: Mapping[str, Callable[[ReadFields, str, Any], None]] = {
    **dict.fromkeys(_TEXTS.split(), _text),
    **dict.fromkeys(_INTEGERS.split(), _integer),
    **dict.fromkeys(_NUMBERS.split(), _number),
    **dict.fromkeys(_YES_NO.split(), _yes_no),
    **dict.fromkeys(_LISTS.split(), _list),
    **dict.fromkeys(_FLAGS, _flags),
    **dict.fromkeys(_ANYTHING.split(), _anything),
    **dict.fromkeys(_SINCE, _anything),
}


def kind(value: Any) -> str:
    """Slurm's name of the type of a JSON value."""
    return _KINDS[type(value)][1]


def hosts(entries: list[str]) -> tuple[str, ...]:
    """Names and hostlists in the order written, each name once; raises ValueError if they are invalid."""
    return tuple(dict.fromkeys(name for entry in entries for name in hostlist.expand(entry)))
