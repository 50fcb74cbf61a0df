"""Damaged files of every format: no crash, no job that is not in the file, and the counts add up."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    "scheduled_time"
)
TABLES = {
    "alibaba2018": ("", "M{n},2,j_{n},1,Terminated,100,16{n},100,0.5", ","),
    "alibaba_gpu2020": ("", "j{n},worker,1.0,Terminated,5.0,7.5,600.0,29.2,50.0,T4", ","),
    "openb": (OPENB, "pod-{n},6000,12288,1,460,,LS,Running,10,10{n},40", ","),
    "gwf": (
        "WorkflowID, JobID , SubmitTime, RunTime , NProcs , ReqNProcs , Dependencies",
        "0 , {n} , 87 , 11 , 1 , 1 , 4 5",
        ",",
    ),
    "gwf text": (
        "# a comment",
        "{n} 5 2 30 4 -1 -1 4 60 -1 1 U1 G1 X1 Q1 -1 S1 -1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1",
        " ",
    ),
}
"""Name -> header, row, what separates fields."""

FIELD = st.sampled_from(
    [
        "",
        "-1",
        "0",
        "1e308",
        "-1e308",
        "1e999",
        "nan",
        "inf",
        "-inf",
        "1_0",
        "0x1",
        "x",
        "9" * 400,
        "２",
        "'",
        " ",
    ]
) | st.text(st.characters(exclude_characters='"\r\n\0#;,', exclude_categories=["Cs", "Z", "Cc"]), max_size=4)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def damaged(draw, row, separator):
    """Return up to 12 rows, some of them with fields changed, lost or added."""
    rows = []
    for number in range(draw(st.integers(1, 12))):
        fields = row.format(n=draw(st.integers(0, number))).split(separator)
        for _ in range(draw(st.integers(0, 2))):
            place = draw(st.integers(0, len(fields) - 1))
            change = draw(st.sampled_from(["set", "lose", "add"]))
            fields[place : place + (change != "add")] = [draw(FIELD)] * (change != "lose")
            fields = fields or ["x"]
        rows.append(separator.join(fields))
    return [text for text in rows if text.replace(separator, "").strip()]


@pytest.mark.parametrize("name", TABLES)
@QUICK
@given(data=st.data())
def test_the_rows_of_a_damaged_table_are_jobs_or_rejected(tmp_path, name, data):
    header, row, separator = TABLES[name]
    rows = data.draw(damaged(row, separator))
    path = tmp_path / "trace"
    path.write_text("\n".join(([header] if header else []) + rows) + "\n", encoding="utf-8")
    try:
        jobs, rejected = read_trace(path, name.split()[0], lenient=True)
    except UserError:
        return
    assert len(jobs) + len(rejected) == len(rows)
    written = path.read_text("utf-8") + path.read_text("latin-1")
    assert all(part.strip() in written for job in jobs.id for part in job.split("/"))


ENTRIES = {
    "batsim": {"id": 1, "subtime": 5, "walltime": 30, "res": 4, "profile": "d"},
    "philly": {
        "jobid": "a",
        "user": "u",
        "vc": "v",
        "status": "Pass",
        "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:09",
                "end_time": "2017-10-07 01:13:23",
                "detail": [{"ip": "m", "gpus": ["gpu0"]}],
            }
        ],
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def damaged_entry(draw, entry, depth=0):
    """Return the entry with a value changed or lost, at any depth."""
    kind = draw(st.sampled_from(["keep", "inside", "inside", "set", "lose"] if depth < 6 else ["set"]))
    if kind == "set":
        return draw(JSON)
    if kind == "keep" or not isinstance(entry, dict | list) or not entry:
        return entry
    key = draw(st.sampled_from(sorted(entry) if isinstance(entry, dict) else range(len(entry))))
    changed = dict(entry) if isinstance(entry, dict) else list(entry)
    if kind == "lose":
        del changed[key]
    else:
        changed[key] = draw(damaged_entry(entry[key], depth + 1))
    return changed


@pytest.mark.parametrize("name", ENTRIES)
@QUICK
@given(data=st.data())
def test_the_entries_of_damaged_json_are_jobs_or_rejected(tmp_path, name, data):
    entry = ENTRIES[name]
    held = data.draw(st.lists(damaged_entry(entry), min_size=1, max_size=6)) + [entry]
    profiles = data.draw(damaged_entry({"d": {"type": "delay", "delay": 9}}))
    whole = {"nb_res": data.draw(JSON), "jobs": held, "profiles": profiles} if name == "batsim" else held
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    try:
        jobs, rejected = read_trace(path, name, lenient=True)
    except UserError:
        return
    assert len(jobs) + len(rejected) == len(held)


@pytest.mark.parametrize("name", ["alibaba2018", "alibaba_gpu2020", "openb", "gwf", "batsim", "philly"])
@QUICK
@example(junk=b"\r\x00", start=b"")
@given(
    junk=st.binary(max_size=200), start=st.sampled_from([b"", b"[{", b"{", OPENB.encode() + b"\n", b"# \n"])
)
def test_any_bytes_are_read_or_refused(tmp_path, name, junk, start):
    path = tmp_path / "trace"
    path.write_bytes(start + junk)
    for format in (name, None):
        try:
            jobs, _ = read_trace(path, format, lenient=True)
        except UserError:
            continue
        assert len(jobs)
