"""Workloads as files: what is written is read back equal, or refused with what the format can't hold."""

import dataclasses
import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload import UNKNOWN, Resource, Workload
from schedrl.workload.constraints import Allowed, Predecessors
from schedrl.workload.readers import read_trace
from schedrl.workload.writers import write_trace

QUICK = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TIME = st.floats(0, 1e12) | st.integers(0, 10**6).map(float)
MAYBE = TIME | st.just(UNKNOWN)
ODD = [
    "007",
    "+5",
    "1e3",
    "-1",
    "NA",
    "nan",
    "None",
    "null",
    " x",
    "x ",
    '"',
    'a"b',
    "a,b",
    "a\nb",
    "a\r\nb",
    "a\rb",
]
ODD += [
    "\ttab",
    "#schedrl ",
    "任务-甲",
    "２",
    "\u2028",
    "\x85",
    "\x0b",
    "a\0b",
    "\ufeff",
    "'",
    "\\",
    "1,2",
    ";",
    "True",
]
WORD = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NAME = WORD.filter(str.strip)
BIG = st.integers(-(2**63), 2**63 - 1)


def columns(count, draw):
    def many(values):
        return draw(st.lists(values, min_size=count, max_size=count))

    kinds = {
        "text": many(WORD),
        "int64": np.array(many(BIG), np.int64),
        "uint64": np.array(many(st.integers(0, 2**64 - 1)), np.uint64),
        "int8": np.array(many(st.integers(-128, 127)), np.int8),
        "float64": np.array(many(st.floats() | st.just(-0.0)), np.float64),
        "float32": np.array(many(st.floats(width=32)), np.float32),
        "bool": np.array(many(st.booleans())),
    }
    names = draw(st.dictionaries(NAME, st.sampled_from(sorted(kinds)), max_size=4))
    taken = {f.name for f in dataclasses.fields(Workload)}
    return {
        name: kinds[kind] for name, kind in names.items() if name not in taken and not hasattr(Workload, name)
    }


@st.composite
def workloads(draw):
    count = draw(st.integers(1, 6))

    def many(values, **kwargs):
        return draw(st.lists(values, min_size=count, max_size=count, **kwargs))

    def optional(values):
        return many(values) if draw(st.booleans()) else None

    resources = [
        Resource(*pair) for pair in draw(st.dictionaries(NAME, WORD, min_size=1, max_size=3)).items()
    ]
    demand = [
        [draw(st.floats(1e-9, 1e9)), *(draw(st.floats(0, 1e9)) for _ in resources[1:])] for _ in range(count)
    ]
    start = many(MAYBE)
    finish = [s + d for s, d in zip(start, many(TIME), strict=True)]
    recorded = draw(st.booleans())
    return Workload(
        many(TIME),
        many(TIME),
        demand,
        resources,
        draw(st.sampled_from(["s", "step", "任务"])),
        estimate=optional(MAYBE),
        instances=optional(st.integers(1, 2**40)),
        priority=optional(st.floats(allow_nan=False, allow_infinity=False)),
        deadline=optional(MAYBE),
        user=optional(WORD),
        id=many(NAME, unique=True) if draw(st.booleans()) else None,
        recorded_start=start if recorded else None,
        recorded_finish=finish if recorded else None,
        capacity=draw(st.none() | st.just([UNKNOWN] * len(resources)) | st.just([1.5] * len(resources))),
        about=draw(st.dictionaries(WORD, WORD, max_size=2)),
        predecessors=draw(st.none() | predecessors(count)),
        allowed=draw(st.none() | allowed(count)),
        extra=columns(count, draw),
    )


@st.composite
def predecessors(draw, count):
    """What jobs wait for: others, themselves, jobs that aren't there."""
    missing = tuple(
        draw(st.lists(NAME, max_size=2, unique=True).map(lambda names: [f"no {n}" for n in names]))
    )
    lists = draw(
        st.lists(st.lists(st.integers(-len(missing), count - 1), max_size=3), min_size=count, max_size=count)
    )
    think = draw(st.lists(TIME, min_size=count, max_size=count))
    found = Predecessors.of(lists, think) if not missing else None
    if found is None:
        offset = np.cumsum([0, *map(len, lists)])
        found = Predecessors(offset, np.concatenate(lists), np.array(think), missing)
    return dataclasses.replace(found, dropped=draw(st.integers(0, 2)))


def allowed(count):
    """Machines that will do."""
    label = st.sampled_from(["T4", "V100", "a|b", "50%", "m 1", "任务"])
    return st.lists(st.none() | st.lists(label, max_size=3), min_size=count, max_size=count).map(Allowed.of)


@QUICK
@given(jobs=workloads(), zipped=st.booleans())
def test_csv_gives_every_workload_back(tmp_path, jobs, zipped):
    path = tmp_path / ("jobs.csv.gz" if zipped else "jobs.csv")
    write_trace(jobs, path)
    again, rejected = read_trace(path, strict=True)
    assert len(rejected) == 0
    assert again.same_as(jobs)
    for name, column in jobs.extra.items():
        assert again.extra[name].dtype == (object if column.dtype.kind == "U" else column.dtype)
    assert path.read_bytes().startswith(b"\x1f\x8b") == zipped
    assert [file.name for file in tmp_path.iterdir() if ".part" in file.name] == []


WHOLE = st.integers(0, 10**7).map(float) | st.integers(0, 10**6).map(lambda n: n / 8)
FITTING = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters=";"), min_size=1, max_size=5
)


@st.composite
def standard(draw):
    """Workloads that SWF has room for."""
    count = draw(st.integers(1, 6))

    def many(values, **kwargs):
        return np.array(draw(st.lists(values, min_size=count, max_size=count, **kwargs)))

    arrival, run = many(WHOLE), many(WHOLE)
    wait = many(WHOLE | st.just(UNKNOWN))
    cpu = many(st.integers(1, 512)).astype(float)
    memory = many(st.integers(1, 2**20)).astype(float) * cpu if draw(st.booleans()) else None
    longer = many(WHOLE | st.just(UNKNOWN))
    names = ("cpu_time", "group", "queue", "partition", "executable")
    extra = {name: many(WHOLE) for name in draw(st.sets(st.sampled_from(names)))}
    if draw(st.booleans()):
        extra["status"] = many(st.sampled_from([0.0, 1.0, 5.0]))
    about = draw(
        st.dictionaries(st.sampled_from(["Computer", "Note", "TimeZone"]), st.sampled_from(["x", "Größe 甲"]))
    )
    procs = draw(st.none() | st.integers(1, 1000))
    ids: list = many(FITTING, unique=True).tolist()
    waits_for = None
    if draw(st.booleans()):  # numbers of jobs, some of which there are
        ids = draw(st.lists(st.integers(1, 20).map(str), min_size=count, max_size=count, unique=True))
        named = draw(st.lists(st.none() | st.integers(1, 20), min_size=count, max_size=count))
        job = np.flatnonzero([name is not None for name in named])
        names = np.array([str(name) for name in named if name is not None], object)
        waits_for = Predecessors.named(np.array(ids, object), job, names, many(WHOLE))
    return Workload(
        arrival,
        run,
        np.column_stack([cpu] if memory is None else [cpu, memory]),
        [Resource("cpu", "processors"), Resource("memory", "KB")][: 1 if memory is None else 2],
        "s",
        estimate=np.where(run + longer > 0, run + longer, UNKNOWN),
        user=many(st.just("") | FITTING.filter(lambda name: name != "-1")).tolist(),
        id=ids,
        predecessors=waits_for,
        recorded_start=arrival + wait,
        recorded_finish=arrival + wait + run,
        capacity=None if procs is None else [procs, UNKNOWN][: 1 if memory is None else 2],
        about=about | ({} if procs is None else {"MaxProcs": str(procs)}),
        extra={name: column for name, column in extra.items()}
        | ({} if memory is None else {"requested_memory": memory / cpu}),
    )


@QUICK
@given(jobs=standard(), zipped=st.booleans())
def test_swf_gives_back_what_it_has_room_for(tmp_path, jobs, zipped):
    path = tmp_path / ("jobs.swf.gz" if zipped else "jobs.swf")
    write_trace(jobs, path)
    again, rejected = read_trace(path, "swf", strict=True)
    assert len(rejected) == 0
    assert again.same_as(jobs)


def jobs_of(**changes):
    held = {
        "arrival": [0, 1],
        "duration": [5, 6],
        "demand": [[1.0], [2.0]],
        "resources": ["cpu"],
        "time_unit": "s",
    }
    return Workload(**(held | changes))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"resources": ["gpu"]}, "resources gpu"),
        ({"resources": ["cpu", "memory"], "demand": [[1, 1], [1, 1]]}, "memory in units"),
        ({"resources": ["cpu", Resource("memory", "GB")], "demand": [[1, 0], [1, 0]]}, "memory that no job"),
        (
            {
                "resources": ["cpu", Resource("memory", "KB")],
                "demand": [[1, 1], [1, 0]],
                "extra": {"used_memory": np.array([1, 3])},
            },
            "ask for no memory and used some",
        ),
        ({"time_unit": "step"}, "time in steps"),
        ({"demand": [[0.5], [1]]}, "parts of a processor"),
        ({"priority": [0, 1]}, "priorities"),
        ({"deadline": [9, UNKNOWN]}, "deadlines"),
        ({"instances": [1, 2]}, "gangs of several processors"),
        ({"estimate": [4, 6]}, "estimates below"),
        ({"estimate": [0, 6], "duration": [0, 6]}, "estimates below"),
        ({"recorded_start": [0, 0]}, "starts before"),
        ({"recorded_start": [0, 1], "recorded_finish": [5, 8]}, "recorded ends"),
        ({"recorded_start": [0, 1]}, "recorded ends"),
        ({"extra": {"status": np.array([1, 3])}}, "status 2, 3, 4"),
        ({"extra": {"status": ["ok", "ok"]}}, "extra columns status"),
        ({"extra": {"colour": np.array([1, 3])}}, "extra columns colour"),
        ({"user": ["-1", "a"]}, "users like '-1'"),
        ({"id": ["a b", "c"]}, "ids like 'a b'"),
        ({"id": ["a", ";c"]}, "ids like ';c'"),
        ({"about": {"Note": "a\nKey: b"}}, "texts like these"),
        ({"about": {"Max Procs": "1"}}, "can't be a key"),
    ],
)
def test_swf_says_what_it_has_no_room_for(tmp_path, changes, what):
    with pytest.raises(UserError, match=what):
        write_trace(jobs_of(**changes), tmp_path / "jobs.swf")
    assert list(tmp_path.iterdir()) == []


def test_swf_has_memory_in_kilobytes_and_says_how_many_processors_there_are(tmp_path):
    jobs = jobs_of(
        resources=["cpu", Resource("memory", "GB")],
        demand=[[1, 4], [2, 1]],
        capacity=[40, 160],
        id=['a"b', "任务"],
    )
    write_trace(jobs, tmp_path / "jobs.swf")
    again, _ = read_trace(tmp_path / "jobs.swf")
    assert again.demand.tolist() == [[1, 4e6], [2, 1e6]]
    assert again.resources[1] == Resource("memory", "KB")
    assert again.capacity[0] == 40
    assert again.id.tolist() == ['a"b', "任务"]


def test_gangs_of_processors_come_back_as_gangs(tmp_path):
    write_trace(jobs_of(demand=[[1], [1]], instances=[4, 8]), tmp_path / "jobs.swf")
    gangs, _ = read_trace(tmp_path / "jobs.swf", gangs=True)
    whole, _ = read_trace(tmp_path / "jobs.swf")
    assert gangs.instances.tolist() == [4, 8]
    assert whole.demand[:, 0].tolist() == [4, 8]


@pytest.mark.parametrize("name", ["lublin_256.swf", "NASA-iPSC-1993-3.1-cln.first2000.swf"])
@pytest.mark.parametrize("ending", ["swf", "csv", "csv.gz"])
def test_real_logs_come_back_equal(shared_dir, tmp_path, name, ending):
    jobs, _ = read_trace(shared_dir / "traces" / name)
    write_trace(jobs, tmp_path / f"copy.{ending}")
    again, rejected = read_trace(tmp_path / f"copy.{ending}")
    assert len(rejected) == 0
    assert again.same_as(jobs)


def test_large_whole_numbers_are_exact(tmp_path):
    jobs = jobs_of(extra={"n": np.array([2**62 + 1, -(2**62) - 1])})
    write_trace(jobs, tmp_path / "jobs.csv.gz")
    assert "4611686018427387905" in gzip.decompress((tmp_path / "jobs.csv.gz").read_bytes()).decode()


@pytest.mark.parametrize(
    ("extra", "what"),
    [
        ({"z": np.array([1j, 2])}, "neither numbers nor text"),
        ({"z": np.array(["2020-01-01", "2020-01-02"], "M8[s]")}, "neither numbers nor text"),
        ({"z": np.zeros((2, 2))}, "neither numbers nor text"),
        ({"z": np.array([1, "a"], object)}, "neither numbers nor text"),
        ({"demand.cpu": np.zeros(2)}, "rename it"),
        ({"z": ["\ud800", "b"]}, "UTF-8"),
    ],
)
def test_csv_refuses_what_it_can_not_hold(tmp_path, extra, what):
    with pytest.raises(UserError, match=what):
        write_trace(jobs_of(extra=extra), tmp_path / "jobs.csv")
    assert list(tmp_path.iterdir()) == []


def test_names_that_say_no_format_and_folders_that_are_not_there(tmp_path):
    with pytest.raises(UserError, match="can't tell the format"):
        write_trace(jobs_of(), tmp_path / "jobs.xlsx")
    with pytest.raises(UserError, match="can't write"):
        write_trace(jobs_of(), tmp_path / "nowhere" / "jobs.csv")
    write_trace(jobs_of(), tmp_path / "jobs", "csv")
    assert read_trace(tmp_path / "jobs")[0].same_as(jobs_of())


@pytest.mark.parametrize(
    "damage",
    [
        {"extra": {"n": "M8[s]"}},
        {"extra": {"m": "<i8"}},
        {"resources": []},
        {"resources": [["gpu", "gpus"]]},
        {"resources": [["cpu"]]},
        {"capacity": [1, 2]},
        {"capacity": ["x"]},
        {"about": {"a": 1}},
        {"time_unit": ""},
        {"time_unit": None},
        {"extra": []},
    ],
)
def test_damaged_metadata_is_told(tmp_path, damage):
    path = tmp_path / "jobs.csv"
    write_trace(jobs_of(extra={"n": np.array([1, 2])}), path)
    first, rest = path.read_text().split("\n", 1)
    path.write_text(
        "#schedrl " + json.dumps(json.loads(first.removeprefix("#schedrl ")) | damage) + "\n" + rest
    )
    with pytest.raises(UserError):
        read_trace(path)


@pytest.mark.parametrize(("kind", "cell"), [("<i8", "1.5"), ("|i1", "300"), ("|b1", "2"), ("<i8", "")])
def test_a_cell_that_does_not_fit_its_type_is_told(tmp_path, kind, cell):
    path = tmp_path / "jobs.csv"
    write_trace(jobs_of(extra={"n": np.array([1, 2])}), path)
    path.write_text(
        path.read_text().replace("<i8", kind).replace('"1",1.0,6.0,2.0,2', f'"1",1.0,6.0,2.0,{cell}')
    )
    with pytest.raises(UserError, match="column 'n' must hold"):
        read_trace(path)
