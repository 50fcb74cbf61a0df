"""Files that come beside job traces and hold no jobs: how each begins, what it is, and what it lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from schedrl.workload.readers.formats.accounting import COMMAND

if TYPE_CHECKING:
    from schedrl.workload.readers.recognise import Head

PAI = "of the Alibaba GPU trace 2020 (PAI)"
PAI_LACKS = "{}; the jobs are in pai_task_table.csv"
BATCH = "of the Alibaba trace 2018"
BATCH_LACKS = "{}; the jobs are in batch_task.csv"
GOOGLE = "of Google's trace of 2011"
GOOGLE_LACKS = "{}; the jobs are in task_events"
PHILLY_LACKS = "it has no jobs; they are in cluster_job_log"

HEADERS: tuple[tuple[str, str, str], ...] = (
    (
        "sn,cpu_milli,memory_mib,gpu,model",
        "a list of machines (Alibaba GPU trace 2023, OpenB)",
        "it has no jobs; they are in openb_pod_list_*.csv (schedrl.workload.machines reads the machines)",
    ),
    (
        "instance_sn,role,app_name,cpu_request,gpu_request,creation_time,deletion_time,...",
        "a list of instances (Alibaba GPU trace 2025, DLRM)",
        "most have no times, because they were there all along, so arrivals and run times are not known. For "
        "a file of those that have them use a map: id=instance_sn,arrival=creation_time,start=creation_time,"
        "finish=deletion_time,cpu=cpu_request,memory=memory_request[GiB],gpu=gpu_request",
    ),
    (
        "job_name,inst_id,user,status,start_time,end_time",
        f"the job table {PAI}",
        PAI_LACKS.format("it has no demands"),
    ),
    (
        "job_name,task_name,inst_name,worker_name,inst_id,status,start_time,end_time,machine",
        f"the table of instances {PAI}",
        PAI_LACKS.format("it has no demands"),
    ),
    (
        "machine,gpu_type,cap_cpu,cap_mem,cap_gpu",
        f"the list of machines {PAI}",
        PAI_LACKS.format("it has no jobs"),
    ),
    (
        "worker_name,machine,start_time,end_time,machine_cpu_iowait,machine_gpu,...",
        f"the measurements of machines {PAI}",
        PAI_LACKS.format("it has no jobs"),
    ),
    (
        "job_name,task_name,worker_name,inst_id,machine,gpu_name,cpu_usage,gpu_wrk_util,...",
        f"the measurements of instances {PAI}",
        PAI_LACKS.format("it has neither times nor demands"),
    ),
    (
        "inst_id,user,gpu_type_spec,group,workload",
        f"the table of tags {PAI}",
        PAI_LACKS.format("it has neither times nor demands"),
    ),
    ("vc,node num", "a list of virtual clusters and their numbers of nodes (Philly)", PHILLY_LACKS),
    ("machineId,number of GPUs,single GPU mem", "a list of machines (Philly)", PHILLY_LACKS),
    ("time,machineId,gpu0_util,...", "the utilisation of GPUs (Philly)", PHILLY_LACKS),
    ("time,machine_id,cpu_util", "the utilisation of processors (Philly)", PHILLY_LACKS),
    ("time,machine_id,mem_total,mem_free", "the use of memory (Philly)", PHILLY_LACKS),
)
"""(column names of the first row, "..." for others, what it is, what it lacks)."""

NUMBER = r"(-?[\d.]+(e[-+]?\d+)?)?"
HASH = r"[0-9a-f]{50,}"
STATE = r"[A-Z][a-z]+"
ROWS: tuple[tuple[int, Mapping[int, str], str, str], ...] = (
    (
        6,
        {0: r"[0-9a-f]+", 1: HASH, 3: STATE, 4: NUMBER, 5: NUMBER},
        f"the job table {PAI}",
        PAI_LACKS.format("it has no demands"),
    ),
    (
        9,
        {2: HASH, 3: HASH, 5: STATE, 6: NUMBER, 7: NUMBER},
        f"the table of instances {PAI}",
        PAI_LACKS.format("it has no demands"),
    ),
    (
        5,
        {0: r"[0-9a-f]{20,}", 1: r"[A-Z][A-Z\d]*", 2: NUMBER, 3: NUMBER, 4: NUMBER},
        f"the list of machines {PAI}",
        PAI_LACKS.format("it has no jobs"),
    ),
    (
        12,
        {0: HASH, 1: r"[0-9a-f]{20,}", 2: NUMBER, 3: NUMBER, 11: NUMBER},
        f"the measurements of machines {PAI}",
        PAI_LACKS.format("it has no jobs"),
    ),
    (
        16,
        {2: HASH, 3: HASH, 5: r"/dev/.*|"},
        f"the measurements of instances {PAI}",
        PAI_LACKS.format("it has neither times nor demands"),
    ),
    (
        5,
        {0: HASH, 1: r"[0-9a-f]+", 3: r"[0-9a-f]*"},
        f"the table of tags {PAI}",
        PAI_LACKS.format("it has neither times nor demands"),
    ),
    (
        14,
        {0: r"ins_.*", 5: NUMBER, 6: NUMBER, 7: r"(m_\d+)?", 10: NUMBER},
        f"the table of instances {BATCH}",
        BATCH_LACKS.format("it says what was used, not what was asked for"),
    ),
    (
        7,
        {0: r"m_\d+", 1: NUMBER, 4: NUMBER, 5: NUMBER},
        f"the list of machines {BATCH}",
        BATCH_LACKS.format("it has no jobs"),
    ),
    (
        9,
        {0: r"m_\d+", 1: NUMBER, 2: NUMBER},
        f"the utilisation of machines {BATCH}",
        BATCH_LACKS.format("it has no jobs"),
    ),
    (
        8,
        {0: r"c_\d+", 1: r"m_\d+", 5: NUMBER, 6: NUMBER},
        f"the list of containers {BATCH}",
        BATCH_LACKS.format("containers have no run time, they are services"),
    ),
    (
        11,
        {0: r"c_\d+", 1: r"m_\d+", 2: NUMBER, 3: NUMBER},
        f"the utilisation of containers {BATCH}",
        BATCH_LACKS.format("it has no jobs"),
    ),
    (
        8,
        {0: NUMBER, 2: NUMBER, 3: r"[0-8]", 4: r".*\D.*", 5: r"[0-3]", 6: r".*\D.*"},
        f"the job events {GOOGLE}",
        GOOGLE_LACKS.format("they state no demands"),
    ),
    (
        6,
        {0: NUMBER, 1: NUMBER, 2: r"[0-2]", 3: r".*\D.*"},
        f"the machine events {GOOGLE}",
        GOOGLE_LACKS.format("it has no jobs"),
    ),
    (
        20,
        {place: NUMBER for place in (0, 1, 2, 3, 4, 5)},
        f"the usage of tasks {GOOGLE}",
        GOOGLE_LACKS.format("it says what was used, not what was asked for"),
    ),
    (
        5,
        {0: NUMBER, 1: r".*\D.*", 2: NUMBER, 3: NUMBER, 4: NUMBER},
        "the CPU readings of Azure's public dataset",
        "it has no jobs; they are in vmtable.csv",
    ),
)
"""(fields of every row, place -> pattern, what it is, what it lacks) of tables without a header row."""

KUBECTL = "kubectl get pods --all-namespaces -o json > pods.json"
TASKS = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
TEXTS: tuple[tuple[str, str, str], ...] = (
    (
        r'\A\s*\{.*"gap_seconds"',
        "a record of how many spot machines there were (SkyPilot)",
        "it has no jobs; use it as the availability of machines, and take the jobs from another file",
    ),
    (
        r'^\s*syntax\s*=\s*"proto',
        "a schema in Protocol Buffers",
        "it describes a format and has no jobs; name the file with the data",
    ),
    (
        r"^\|\s*Field\s*\|",
        "a description of tables",
        "it describes a format and has no jobs; name the file with the data",
    ),
    (
        r"\A[ \t]*JobID(?:Raw)?[ \t]+\S.*\n[ \t]*-{3,}[ \t]+-{3,}",
        "Slurm's log in columns of fixed width",
        f"they cut values short; print it with bars between them: {COMMAND}",
    ),
    (
        r'\A\s*\{.*"(?:association|allocation_nodes|plugins?)"\s*:',
        "Slurm's log as sacct prints it in JSON",
        f"only its table is read; print that: {COMMAND}",
    ),
    (
        r"\A[ \t]*JOBID[ \t]+PARTITION[ \t]+NAME",
        "Slurm's queue of now (squeue)",
        f"no job in it has ended; print what has: {COMMAND}",
    ),
    (
        r"\A(?:NAMESPACE[ \t]+)?NAME[ \t]+READY[ \t]+STATUS[ \t]+RESTARTS",
        "a table of pods as kubectl shows it",
        f"it has neither times nor requests; print all: {KUBECTL}",
    ),
    (
        r"\A(?:---\s*)?apiVersion:",
        "an object of Kubernetes in YAML",
        f"pods are read from JSON; print it: {KUBECTL}",
    ),
    (
        r"\A\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Z];\d",
        "an accounting log of PBS as its server writes it",
        "its fields have no columns. Make a table of the lines with ;E; and the values of qtime, start, end, "
        "Resource_List.ncpus and Resource_List.walltime, and read it with --map arrival=qtime,start=start,"
        "finish=end,cpu=ncpus,estimate=walltime[hms]",
    ),
    (
        r'\A"JOB_[A-Z]+"\s+"\d',
        "an accounting log of LSF as its daemon writes it (lsb.acct)",
        'its fields have no names. Print a table: bjobs -a -u all -o "jobid user submit_time start_time '
        "finish_time slots delimiter=','\", and map its columns",
    ),
    (
        rf"\A\s*{TASKS}\s*\Z",
        f"the names of the columns of the task table {PAI}",
        "it has no rows; they are in pai_task_table.csv, which needs no header row",
    ),
)
"""(pattern somewhere in the first bytes, what it is, what it lacks)."""


def _named(names: str) -> Callable[[Head], bool]:
    columns = names.removesuffix(",...").split(",")
    if names.endswith(",..."):
        return lambda head: head.has_columns(*columns)
    return lambda head: head.is_header(*columns)


def _kinds(width: int, patterns: Mapping[int, str]) -> Callable[[Head], bool]:
    def applies(head: Head) -> bool:
        return bool(head.rows) and all(
            len(row) == width and all(re.fullmatch(kind, row[place]) for place, kind in patterns.items())
            for row in head.rows
        )

    return applies


def _like(pattern: str) -> Callable[[Head], bool]:
    found = re.compile(pattern, re.MULTILINE | re.DOTALL)
    return lambda head: found.search(head.text) is not None


COMPANIONS = (
    *((_named(names), what, lacks) for names, what, lacks in HEADERS),
    *((_kinds(width, patterns), what, lacks) for width, patterns, what, lacks in ROWS),
    *((_like(pattern), what, lacks) for pattern, what, lacks in TEXTS),
)
"""(how it begins, what it is, what it lacks)."""
