"""The parts of Slurm's long records that never change here, and the small objects they are built from."""

import math
from typing import Any

Json = dict[str, Any]


def number(value: float) -> Json:
    """A number that is set; infinity is Slurm's "no limit"."""
    if value == math.inf:
        return INFINITE
    return {"set": True, "infinite": False, "number": int(value)}


UNSET: Json = {"set": False, "infinite": False, "number": 0}
INFINITE: Json = {"set": False, "infinite": True, "number": 0}
ZERO: Json = number(0)

SUCCESS: Json = {"status": ["SUCCESS"], "return_code": ZERO, "signal": {"id": UNSET, "name": ""}}
#: The exit code of a job whose node failed.
HUNG_UP: Json = {"status": ["SIGNALED"], "return_code": UNSET, "signal": {"id": number(1), "name": "HUP"}}


def _same(names: str, value: Any) -> Json:
    return dict.fromkeys(names.split(), value)


#: A job, as v0.0.45 writes it.
JOB: Json = {
    **_same(
        "account array_task_string batch_features burst_buffer burst_buffer_state cluster_features command container"
        " container_id container_type cpus_per_tres cron federation_origin federation_siblings_active"
        " federation_siblings_viable network selinux_context standard_input standard_output standard_error"
        " stdin_expanded stdout_expanded stderr_expanded submit_line system_comment tres_bind tres_freq"
        " tres_per_socket",
        "",
    ),
    **_same(
        "array_job_id array_max_tasks deadline delay_boot max_cpus tasks_per_tres tasks_per_node tasks_per_board"
        " minimum_tmp_disk_per_node preempt_time preemptable_time pre_sus_time resize_time suspend_time time_minimum",
        ZERO,
    ),
    **_same(
        "array_task_id cores_per_socket cpu_frequency_minimum cpu_frequency_maximum cpu_frequency_governor"
        " sockets_per_node threads_per_core",
        UNSET,
    ),
    **_same(
        "association_id core_spec memory_update_delay memory_update_margin required_switches restart_cnt segment_size"
        " sockets_per_board maximum_switch_wait_time",
        0,
    ),
    **_same("batch_flag contiguous reboot", False),
    **_same("job_size_str mail_type priority_by_partition", []),
    **_same("tasks_per_core tasks_per_socket", INFINITE),
    "allocating_node": "localhost",
    "thread_spec": 32766,
    "profile": ["NOT_SET"],
    "requeue": True,
}

#: Version -> fields of v0.0.45 that its jobs lack; both older versions have `power` instead.
JOB_LACKS = {
    "v0.0.42": "container_type memory_update_delay memory_update_margin step_id submit_line".split(),
    "v0.0.43": "container_type memory_update_delay memory_update_margin step_id submit_line".split(),
    "v0.0.44": "container_type memory_update_delay memory_update_margin".split(),
    "v0.0.45": (),
}
JOB_INSTEAD: Json = {"power": {"flags": []}}

NODE: Json = {
    **_same(
        "architecture burstbuffer_network_address cluster_name specialized_cpus extra gpu_spec instance_id"
        " instance_type mcs_label operating_system owner reason_set_by_user reservation topology version",
        "",
    ),
    **_same("boot_time tls_cert_last_renewal last_busy reason_changed_at resume_after slurmd_start_time", ZERO),
    **_same("specialized_cores cpu_binding cpu_load specialized_memory res_cores_per_gpu temporary_disk", 0),
    "boards": 1,
    "cert_flags": [],
    "free_mem": UNSET,
    "energy": {
        "average_watts": 0,
        "base_consumed_energy": 0,
        "consumed_energy": 0,
        "current_watts": ZERO,
        "previous_consumed_energy": 0,
        "last_collected": 0,
    },
    "gres_drained": "N/A",
    "next_state_after_reboot": ["INVALID"],
    "address": "127.0.0.1",
    "port": 6818,
    "suspend_time": INFINITE,
    "sockets": 1,
    "weight": 1,
}
#: The fields that nodes of the older versions have instead of `suspend_time`.
NODE_INSTEAD: Json = {"power": {}, "external_sensors": {}, "tres_weighted": 0.0}

PARTITION: Json = {
    "accounts": {"allowed": "", "deny": ""},
    "groups": {"allowed": ""},
    "qos": {"allowed": "", "deny": "", "assigned": ""},
    "alternate": "",
    "cluster": "",
    "minimums": {"nodes": 0},
    "node_sets": "",
    "timeouts": {"resume": UNSET, "suspend": UNSET},
    "suspend_time": UNSET,
}

RESERVATION: Json = {
    "burst_buffer": "",
    "core_specializations": [],
    "features": "",
    "groups": "",
    "licenses": "",
    "max_start_delay": 0,
    "partition": "",
    "purge_completed": {"time": number(300)},
}
