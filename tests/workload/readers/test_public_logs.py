"""Public logs, whole: jobs, work and rejections are those that pandas counts, without the readers' code.

The sample files stand beside the repository and are not part of it; where they are absent the tests skip.
"""

import json

import pandas as pd
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace
from schedrl.workload.readers.rejected import work_of

SWF = [0, 1, 3, 4, 7]
"""Places of job, submission, run time, processors that it had, and that it asked for."""


@pytest.fixture
def trace(shared_dir):
    return lambda name: shared_dir / "traces" / name


def told(path, format, **options):
    """Return what a reader found: jobs, work by resource, rejections by reason."""
    jobs, rejected = read_trace(path, **options)
    assert jobs.time_unit == "s"
    assert read_trace(path, format, **options)[0].same_as(jobs)
    return len(jobs), work_of(jobs), rejected.counts


def counted_in_swf(path):
    """Count an SWF log: every line has run and been given processors."""
    rows = pd.read_csv(path, sep=r"\s+", comment=";", header=None, names=range(18), encoding="latin-1")
    _, submit, run, had, asked = (rows[place] for place in SWF)
    processors = asked.where(asked > 0, had)
    good = (submit >= 0) & (run >= 0) & (processors > 0)
    return int(good.sum()), (run * processors)[good].sum(), len(rows) - int(good.sum())


@pytest.mark.parametrize(
    ("name", "jobs", "work"),
    [
        ("NASA-iPSC-1993-3.1-cln.first2000.swf", 2000, 48_162_795),
        ("lublin_256.swf", 10_000, 2_092_781_168),
        ("opendc/trace.swf", 5, 14_827_589),
    ],
)
def test_logs_of_the_parallel_workloads_archive(trace, name, jobs, work):
    assert counted_in_swf(trace(name)) == (jobs, work, 0)
    found, demand, reasons = told(trace(name), "swf")
    assert (found, demand["cpu"], reasons) == (jobs, work, {})


def test_lines_that_did_not_run_are_rejected_with_their_work(trace, tmp_path):
    """Every tenth line of NASA's log has no run time, every eleventh no processors."""
    lines = trace("NASA-iPSC-1993-3.1-cln.first2000.swf").read_text(encoding="latin-1").splitlines()
    held = [line.split() for line in lines if not line.startswith(";")]
    for number, fields in enumerate(held):
        fields[3] = "-1" if number % 10 == 0 else fields[3]
        fields[4] = "-1" if number % 11 == 0 else fields[4]
    path = tmp_path / "damaged.swf"
    path.write_text("\n".join([line for line in lines if line.startswith(";")] + list(map(" ".join, held))))
    jobs, work, lost = counted_in_swf(path)
    found, demand, reasons = told(path, "swf")
    assert (found, demand["cpu"]) == (jobs, work)
    assert sum(reasons.values()) == lost == 363
    assert reasons == {"runtime_unknown": 200, "demand_unknown": 163}


def test_openb_pods(trace):
    path = trace("openb_pod_list_default.first1000.csv")
    pods = pd.read_csv(path)
    start = pods.scheduled_time.fillna(pods.creation_time)
    length = pods.deletion_time - start
    work = {
        "cpu": (length * pods.cpu_milli / 1000).sum(),
        "memory": (length * pods.memory_mib / 1024).sum(),
        "gpu": (length * pods.num_gpu * pods.gpu_milli / 1000).sum(),
    }
    found, demand, reasons = told(path, "openb")
    assert (found, reasons) == (len(pods), {})
    assert demand == pytest.approx(work, rel=1e-12)
    assert list(read_trace(path)[1].adjusted.values()) == [pods.scheduled_time.isna().sum()]


def test_grid_workflows(trace):
    path = trace("opendc/trace.gwf")
    tasks = pd.read_csv(path, skipinitialspace=True).rename(columns=str.strip)
    found, demand, reasons = told(path, "gwf")
    assert (found, reasons) == (len(tasks), {})
    assert demand["cpu"] == (tasks.RunTime * tasks.NProcs).sum()
    pairs = tasks.Dependencies.astype(str).str.split().explode().str.fullmatch(r"\d+").sum()
    assert len(read_trace(path)[0].predecessors.job) == pairs > 0


def test_batsim_jobs(trace):
    path = trace("batsim_example_workload_hpc_seed1_jobs250.json")
    held = json.loads(path.read_text())
    jobs = pd.DataFrame(held["jobs"])
    delay = jobs.profile.map({name: profile.get("delay") for name, profile in held["profiles"].items()})
    found, demand, reasons = told(path, "batsim")
    assert (found, reasons) == (len(jobs), {})
    assert demand["cpu"] == pytest.approx((delay.clip(upper=jobs.walltime) * jobs.res).sum(), rel=1e-12)


def test_azure_machines_in_the_form_of_maro(trace):
    path = trace("maro_azure2019_vmtable_toy.csv")
    table = pd.read_csv(path)
    found, demand, reasons = told(path, "azure2019")
    assert (found, reasons) == (len(table), {})
    assert demand["cpu"] == (table.vmlifetime * 300 * table.vmcorecountbucket).sum()
    assert demand["memory"] == (table.vmlifetime * 300 * table.vmmemorybucket).sum()


def test_rows_of_dlrm_without_times_are_no_jobs(trace, tmp_path):
    """The sample holds none that has times; with times given to every third, those are the jobs."""
    path = trace("alibaba_gpu2025_dlrm.first500.csv")
    table = pd.read_csv(path)
    columns = {
        "id": "instance_sn",
        "arrival": "creation_time",
        "start": "scheduled_time",
        "finish": "deletion_time",
        **{name: f"{name}_request" for name in ("cpu", "memory", "gpu")},
    }
    mapped = ",".join(f"{field}={column}" for field, column in columns.items())
    with pytest.raises(UserError, match="500 rows rejected: 500 arrival_unknown"):
        read_trace(path, map=mapped)
    some = table.index % 3 == 0
    for number, name in enumerate(("creation_time", "scheduled_time", "deletion_time")):
        table.loc[some, name] = table.index[some] * (number + 1.0) + number
    table.to_csv(tmp_path / "dlrm.csv", index=False)
    length = table.deletion_time - table.scheduled_time
    found, demand, reasons = told(tmp_path / "dlrm.csv", "csv", map=mapped)
    assert (found, reasons) == (int(some.sum()), {"arrival_unknown": int((~some).sum())})
    for name in demand:
        assert demand[name] == pytest.approx((length * table[f"{name}_request"]).sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("philly_vc.csv", "list of virtual clusters"),
        ("openb_node_list_gpu_node.csv", "list of machines"),
        ("skypilot_spot_us-west-2c_v100_1.json", "how many spot machines"),
        ("alibaba_gpu2020_headers/pai_task_table.header", "header"),
    ],
)
def test_files_without_jobs_say_what_they_are(trace, name, what):
    with pytest.raises(UserError, match=what):
        read_trace(trace(name))


@pytest.mark.parametrize("name", ["sacct-P.txt", "sacct.csv"])
def test_an_accounting_log_of_slurm(shared_dir, name):
    path = shared_dir / "cases" / "35-slurm-accounting-log" / name
    rows = pd.read_csv(path, sep="|" if name.endswith("txt") else ",", dtype=str, keep_default_na=False)
    jobs = rows[~rows.JobID.str.contains(".", regex=False)]
    ran = jobs[~jobs.Start.isin(["Unknown", "None"]) & ~jobs.End.isin(["Unknown", "None"])]
    seconds = (pd.to_datetime(ran.End) - pd.to_datetime(ran.Start)).dt.total_seconds()
    found, demand, reasons = told(path, "slurm", time_zone="UTC")
    assert found == len(ran) == 3
    assert demand["cpu"] == (seconds * ran.AllocCPUS.astype(int)).sum() == 406_800
    assert reasons["step"] == len(rows) - len(jobs)
    assert sum(reasons.values()) == len(rows) - len(ran)


@pytest.mark.parametrize(
    "name",
    [
        "38-one-row-takes-memory-from-all/one-job-does-not.csv",
        "44-no-estimates-no-word/limits.csv",
        "50-milliseconds-taken-for-seconds/epoch-ms.csv",
        "54-epoch-times/from-zero.csv",
        "54-epoch-times/shuffled.csv",
        "59-degenerate-training-traces/half-no-time.csv",
        "59-degenerate-training-traces/one-very-long.csv",
    ],
)
def test_tables_of_other_sites(shared_dir, name):
    path = shared_dir / "cases" / name
    table = pd.read_csv(path)
    found, demand, reasons = told(path, "csv")
    assert (found, reasons) == (len(table), {})
    assert demand["cpu"] == pytest.approx((table.duration * table.cpu).sum(), rel=1e-12)
