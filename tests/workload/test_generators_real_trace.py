"""`real_trace`: parts that follow one another in time, workloads cut from them, every setting matters."""

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload import FAMILIES, Workload
from schedrl.workload.generators import generate, settings_of
from schedrl.workload.writers import write_trace


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    arrival = np.cumsum(rng.exponential(10, 1000))
    demand = rng.integers(1, 5, (1000, 2)).astype(float)
    write_trace(Workload(arrival, rng.exponential(50, 1000), demand, time_unit="s"), tmp_path / "jobs.csv")
    return str(tmp_path / "jobs.csv")


def cut(path, num_jobs=50, seed=0, family="train", number=0, **settings):
    return generate(
        settings_of("real_trace").from_dict({"trace_file": path, **settings}), num_jobs, seed, family, number
    )


def ids(jobs):
    return [int(text) for text in jobs.id]


def test_families_are_parts_that_follow_one_another(path):
    sizes = {"train": 600, "validation": 200, "test": 200}
    seen = [ids(cut(path, sizes[family], family=family)) for family in FAMILIES]
    assert sum(seen, []) == list(range(1000))


def test_numbers_are_jobs_in_a_row_and_the_first_pass_uses_each_once(path):
    seen = [ids(cut(path, 50, number=number)) for number in range(12)]
    assert sum(seen, []) == list(range(600))
    again = [ids(cut(path, 50, number=number)) for number in range(12, 24)]
    assert all(np.diff(one).tolist() == [1] * 49 for one in again)
    assert again != seen
    assert max(max(one) for one in again) < 600
    assert again != [ids(cut(path, 50, number=number, seed=1)) for number in range(12, 24)]
    assert again == [ids(cut(path, 50, number=number)) for number in range(12, 24)]


def test_the_first_job_arrives_at_zero_and_gaps_stay(path):
    whole, later = cut(path, 600), cut(path, 50, number=3)
    assert later.arrival[0] == 0
    assert np.allclose(np.diff(later.arrival), np.diff(whole.arrival[150:200]))
    assert (later.duration == whole.duration[150:200]).all()


def test_a_load_is_that_of_the_part_and_an_exact_one_of_every_workload(path):
    given = {"load": 0.7, "capacity": "cpu=10,memory=20", "family": "test", "seed": 4}
    assert cut(path, 200, **given).load().max() == pytest.approx(0.7, abs=1e-9)
    loads = [cut(path, 50, number=number, **given).load().max() for number in range(4)]
    assert np.std(loads) > 0.01
    assert np.mean(loads) == pytest.approx(0.7, abs=0.1)
    for number in range(4):
        jobs = cut(path, 50, number=number, exact_load=True, **given)
        assert jobs.load().max() == pytest.approx(0.7, abs=1e-9)


def test_settings_change_what_is_read(path, tmp_path):
    assert ids(cut(path, 10, window=(1000, 5000)))[0] > 50
    assert ids(cut(path, 10, family="validation", shares=(0.3, 0.1)))[0] == 300
    (tmp_path / "own.txt").write_text("when,long,cpu\n" + "".join(f"{t},5,1\n" for t in range(20)))
    jobs = cut(
        str(tmp_path / "own.txt"), 5, trace_format="csv", map="arrival=when[min],duration=long,cpu=cpu"
    )
    assert (np.diff(jobs.arrival) == 60).all()
    swf = tmp_path / "jobs.swf"
    swf.write_text("".join(f"{i} {i} 0 5 4 -1 -1 4 5 -1 1 1 1 1 1 -1 -1 -1\n" for i in range(1, 21)))
    assert (cut(str(swf), 5).demand == 4).all()
    gangs = cut(str(swf), 5, trace_options=("gangs=true",))
    assert (gangs.instances == 4).all()
    swf.write_text(swf.read_text() + "21 -5 0 -3 4 -1 -1 4 5 -1 1 1 1 1 1 -1 -1 -1\n")
    assert len(cut(str(swf), 5)) == 5
    with pytest.raises(UserError, match="line 21"):
        cut(str(swf), 5, strict=True)


def test_local_times_take_their_zone(tmp_path):
    """Over the jobs that train, Berlin's clocks went forward by an hour."""
    path = tmp_path / "jobs.txt"
    rows = [f"{i}|2024-03-31T01:{i}0:00|2024-03-31T03:{i}5:00|2" for i in range(5)]
    rows += [f"{i}|2024-04-01T00:{i}:00|2024-04-01T01:{i}:00|2" for i in range(10, 25)]
    path.write_text(
        "\n".join(["JobID|Start|End|AllocCPUS|Submit", *(f"{r}|{r.split('|')[1]}" for r in rows)])
    )
    given = {"shares": (0.5, 0.2)}
    utc, berlin = (
        cut(str(path), 5, trace_options=(f"time_zone={zone}",), **given) for zone in ("UTC", "Europe/Berlin")
    )
    assert (utc.duration - berlin.duration).tolist() == [3600] * 5
    with pytest.raises(UserError, match="nearest|names are like"):
        cut(str(path), 5, trace_options=("time_zone=Europe/Berlinn",), **given)


def test_lenient_keeps_the_first_of_rows_that_disagree(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("id,arrival,duration,cpu\n" + "".join(f"{i},{i},5,1\n" for i in range(20)) + "3,3,9,1\n")
    with pytest.raises(UserError, match="3"):
        cut(str(path), 5)
    assert cut(str(path), 5, lenient=True).duration[3] == 5


def test_a_file_that_changes_is_read_again(tmp_path):
    path = tmp_path / "jobs.csv"
    for length in (5, 77):
        path.write_text("arrival,duration,cpu\n" + "".join(f"{i},{length},1\n" for i in range(20)))
        assert cut(str(path), 3).duration[0] == length


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": ""}, "give trace_file"),
        ({"path": "nowhere.swf"}, "is no file"),
        ({"num_jobs": 601}, "train part of .* has 600 jobs"),
        ({"shares": (0.9, 0.1)}, "together below 1"),
        ({"shares": (0.5,)}, "give two"),
        ({"window": (5, 1)}, "end after the start"),
        ({"load": 0}, "at least 1e-06"),
        ({"load": 0.5, "exact_load": True}, "no capacity is known"),
        ({"load": 0.5}, "no capacity is known"),
        ({"exact_load": True}, "give load"),
        ({"trace_options": ("gangs",)}, "NAME=VALUE"),
        ({"trace_format": "swff"}, "nearest: swf"),
    ],
    ids=str,
)
def test_refused(path, arguments, message):
    with pytest.raises(UserError, match=message):
        cut(**{"path": path, **arguments})
