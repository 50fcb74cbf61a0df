"""Azure's traces of 2019 (vmtable) and 2020 (packing, SQLite)."""

import gzip
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

HEADER = (
    "vmid,subscriptionid,deploymentid,vmcreated,vmdeleted,maxcpu,avgcpu,p95maxcpu,vmcategory,"
    "vmcorecountbucket,vmmemorybucket"
)
ROWS = [
    "71fJw0x+SD==,GB6u+C1/==,2sh/Z==,558300,1673700,91.776885,0.728879,20.75963,Delay-insensitive,8,32",
    "xzQ++J==,0XnZ==,7aC==,0,2591400,98.573424,30.340054,98.212503,Interactive,2,4",
    "big==,0XnZ==,7aC==,300,600,1,1,1,Unknown,>24,>64",
    "odd==,0XnZ==,7aC==,300,600,1,1,1,Unknown,many,64",
    "alive==,0XnZ==,7aC==,300,,1,1,1,Unknown,4,8",
    "back==,0XnZ==,7aC==,600,300,1,1,1,Unknown,4,8",
]


def vmtable(path, rows=ROWS, header=None):
    path.write_text("\n".join([*([header] if header else []), *rows]) + "\n")
    return path


@pytest.mark.parametrize("header", [None, HEADER])
def test_2019_with_and_without_a_header(tmp_path, header):
    jobs, rejected = read_trace(vmtable(tmp_path / "vmtable.csv", header=header))
    assert jobs.id.tolist() == ["xzQ++J==", "71fJw0x+SD=="]
    np.testing.assert_array_equal(jobs.arrival, [0, 558300])
    np.testing.assert_array_equal(jobs.duration, [2591400, 1115400])
    np.testing.assert_array_equal(jobs.demand, [[2, 4], [8, 32]])
    assert [tuple(resource) for resource in jobs.resources] == [("cpu", "cores"), ("memory", "GB")]
    assert jobs.user.tolist() == ["0XnZ==", "GB6u+C1/=="]
    assert jobs.extra["vmcategory"].tolist() == ["Interactive", "Delay-insensitive"]
    first = 1 if header is None else 2
    assert [(row.line - first, row.reason, row.id) for row in rejected] == [
        (2, "demand_unknown", "big=="),
        (3, "not_numeric", "odd=="),
        (4, "runtime_unknown", "alive=="),
        (5, "negative_runtime", "back=="),
    ]


def test_2019_an_open_bucket_takes_the_amount_that_is_given(tmp_path):
    path = vmtable(tmp_path / "vmtable.csv", ROWS[:3])
    jobs, rejected = read_trace(path, largest_cores=30, largest_memory="70")
    assert len(rejected) == 0
    assert jobs.demand[jobs.id.tolist().index("big==")].tolist() == [30, 70]
    with pytest.raises(UserError, match="largest_cores"):
        read_trace(path, largest_cores=-1)


def test_2019_any_order_of_named_columns(tmp_path):
    header = "corecountbucket,memorybucket,vmdeleted,vmid,vmcreated"
    jobs, _ = read_trace(vmtable(tmp_path / "vm.csv", ["4,2,9,a,1", "8,4,9,b,0"], header))
    assert jobs.id.tolist() == ["b", "a"]
    assert jobs.demand.tolist() == [[8, 4], [4, 2]]


def test_2019_says_which_column_is_missing(tmp_path):
    with pytest.raises(UserError, match="vmmemorybucket missing"):
        read_trace(
            vmtable(tmp_path / "vm.csv", ["a,1,2,3"], "vmid,vmcreated,vmdeleted,vmcorecount"), "azure2019"
        )


def test_2019_cpu_readings_are_named(tmp_path):
    with pytest.raises(UserError, match="CPU readings.*vmtable"):
        read_trace(vmtable(tmp_path / "readings.csv", ["0,yNf/R3X8fyX==,19.8,24.2,22.9"] * 3))


def test_2019_in_the_form_of_maro(shared_dir):
    jobs, rejected = read_trace(shared_dir / "traces" / "maro_azure2019_vmtable_toy.csv")
    assert len(rejected) == 0
    assert jobs.id.tolist() == ["0", "1", "2"]
    assert jobs.duration.tolist() == [300, 300, 300]
    assert jobs.demand.tolist() == [[2, 4], [8, 16], [16, 32]]


VMS = [
    (0, 5, "A", 0, 0.5, 1.5),
    (1, 5, "A", 1, -3.25, 2.0),
    (2, 6, "B", 0, 1.0, None),
    (3, 6, "C", 0, 1.0, 2.0),
    (4, 6, "B", 1, 2.0, 1.0),
    (5, 6, "B", 1, "noon", 1.0),
    (6, 6, "B", 1, -2.0, -1.0),
    (7, 6, "B", None, 0.25, 0.25),
]
TYPES = [
    (0, "A", 16, 0.5, 0.25, None, 0.1, 0.01),
    (1, "B", 16, 1.0, 1.0, None, 0.2, 0.02),
    (2, "C", 17, 0.125, 0.125, None, 0.1, 0.01),
    (3, "A", 17, 0.25, 0.125, None, 0.1, None),
]


def packing(path, vms=VMS, types=TYPES):
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime)")
        database.execute("CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)")
        database.executemany("INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", vms)
        database.executemany("INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)", types)
        database.commit()
    return path


def test_2020_takes_the_machine_that_most_requests_fit(tmp_path):
    path = packing(tmp_path / "packing.sqlite")
    before = path.read_bytes()
    jobs, rejected = read_trace(path)
    assert jobs.about["machine"] == "16"
    assert jobs.id.tolist() == ["1", "7", "0"]
    np.testing.assert_array_equal(jobs.arrival, [0, 21600, 43200])
    np.testing.assert_array_equal(jobs.duration, [2 * 86400, 0, 86400])
    assert [resource.name for resource in jobs.resources] == ["cpu", "memory", "ssd", "nic"]
    np.testing.assert_array_equal(jobs.demand[0], [0.5, 0.25, 0.1, 0.01])
    assert jobs.priority.tolist() == [0, 0, 1]
    assert jobs.user.tolist() == ["5", "6", "5"]
    assert [(row.line, row.id, row.reason) for row in rejected] == [
        (3, "2", "unfinished"),
        (4, "3", "demand_unknown"),
        (5, "4", "negative_runtime"),
        (6, "5", "not_numeric"),
        (7, "6", "pre_trace"),
    ]
    assert len(jobs) + len(rejected) == len(VMS)
    assert sum(rejected.adjusted.values()) == 1, "the one from before the record is clamped"
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["packing.sqlite"]


def test_2020_another_machine_by_option(tmp_path):
    jobs, rejected = read_trace(packing(tmp_path / "p.sqlite"), machine=17)
    assert jobs.id.tolist() == ["1", "0", "3"]
    np.testing.assert_array_equal(jobs.demand, [[0.25, 0.125, 0.1], [0.25, 0.125, 0.1], [0.125, 0.125, 0.1]])
    assert rejected.counts["demand_unknown"] == 4
    with pytest.raises(UserError, match="machine '99'.*16, 17"):
        read_trace(packing(tmp_path / "q.sqlite"), machine=99)


def test_2020_zipped(tmp_path):
    packed = tmp_path / "p.sqlite.gz"
    packed.write_bytes(gzip.compress(packing(tmp_path / "p.sqlite").read_bytes()))
    plain, _ = read_trace(tmp_path / "p.sqlite")
    zipped, _ = read_trace(packed)
    assert zipped.same_as(plain)


def test_2020_other_and_damaged_databases(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("CREATE TABLE pets (name)")
        database.commit()
    with pytest.raises(UserError, match="tables pets; vm and vmType"):
        read_trace(tmp_path / "other.db")
    whole = packing(tmp_path / "p.sqlite", vms=VMS * 2000).read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="damaged database"):
        read_trace(tmp_path / "cut.db")
    (tmp_path / "text.db").write_bytes(whole.replace(b"CREATE TABLE vm ", b"CR\x80ATE TABLE vm "))
    with pytest.raises(UserError, match="damaged database"):
        read_trace(tmp_path / "text.db")
    (tmp_path / "cut.db.gz").write_bytes(gzip.compress(whole)[:5000])
    with pytest.raises(UserError, match="damaged gzip"):
        read_trace(tmp_path / "cut.db.gz")


def test_2020_empty_tables(tmp_path):
    with pytest.raises(UserError, match="no jobs"):
        read_trace(packing(tmp_path / "a.sqlite", vms=[]))
    with pytest.raises(UserError, match="no jobs"):
        read_trace(packing(tmp_path / "b.sqlite", types=[]))
