"""What a replay keeps of schedules and says about them."""

import csv
import json

import numpy as np
import pytest
from schedules import machines, schedule

from schedrl.evaluation.cluster import plots, report
from schedrl.evaluation.cluster.jobs_csv import JobsFile
from schedrl.evaluation.cluster.replay import BLOCKS, Replay, entry, hot_spot
from schedrl.evaluation.cluster.timeline import Heat, heat
from schedrl.settings import UserError
from schedrl.sim.cluster import simulate
from schedrl.workload import Workload

NAMES = [f"m{m}" for m in range(9)]


def jobs(count=400, seed=0, load=1.0):
    rng = np.random.default_rng(seed)
    return Workload(
        np.cumsum(rng.exponential(1 / load, count)),
        rng.exponential(12, count),
        rng.integers(1, 5, (count, 1)),
        resources=["cpu"],
        time_unit="s",
    )


@pytest.fixture(scope="module")
def replayed():
    workload, cluster = jobs(), machines([[8], [16], [8]])
    rules = ("fifo+first_fit+strict", "fifo+first_fit+skip", "sjf+best_fit+skip")
    schedules = {rule: simulate(workload, cluster, rule) for rule in rules}
    entries = [entry(rule, schedule, 0.5) for rule, schedule in schedules.items()]
    return Replay(tuple(entries)), schedules


def share(*rows):
    return Heat(np.arange(len(rows[0]) + 1.0), np.array(rows, float))


@pytest.mark.parametrize(
    ("rows", "warned"),
    [
        (([1, 1, 0.96, 0], [0.1, 0.2, 0.1, 1]), True),
        (([1, 1, 0.95, 0], [0.1, 0.5, 0.1, 0]), False),  # others are under 30 % on average only if 0.3 is
        (([1, 0, 0, 0], [0, 0, 0, 0]), False),  # hot for a quarter of the time
        (([1, 1, 1, 1], [0.3, 0.3, 0.3, 0.3]), False),
        (([0.9, 0.9, 0.9, 0.9], [0, 0, 0, 0]), False),
    ],
)
def test_a_hot_spot_is_hot_while_others_idle(rows, warned):
    assert bool(hot_spot(share(*rows), NAMES)) is warned


def test_a_hot_spot_names_the_machine_and_how_many_idle():
    line = hot_spot(share([0, 0], [1, 1], [0.2, 0.2], [0.5, 0.5]), NAMES)
    assert "machine m1 is above 95% for 100% of the time" in line
    assert "2 of 3 others are under 30%" in line


def test_the_pooled_mean_is_that_of_the_jobs(replayed):
    replay, schedules = replayed
    for i, (found, made) in enumerate(zip(replay.entries, schedules.values(), strict=True)):
        assert replay.resampled.mean(i).value == pytest.approx(found.measures["bounded_slowdown"]["mean"])
        assert found.counts.sum() == len(made.status)
        assert len(found.counts) == BLOCKS


def test_differences_are_paired_and_against_the_first(replayed):
    replay, _ = replayed
    found = replay.differences()
    assert [d.policy for d in found] == ["fifo+first_fit+skip", "sjf+best_fit+skip"]
    assert {d.baseline for d in found} == {"fifo+first_fit+strict"}
    assert all(d.verdict == "better" and d.difference.high < 0 for d in found)
    same = Replay((replay.entries[1], replay.entries[1]))
    assert same.differences()[0].difference.low == same.differences()[0].difference.high == 0
    assert same.differences()[0].verdict == "can't be told apart"


def test_a_run_in_which_nobody_waits_says_so():
    made = simulate(jobs(300, load=0.01), machines([[8]]), "fifo+first_fit")
    warnings = " ".join(Replay((entry("a", made, 0.1),)).warnings())
    assert "can't tell policies apart" in warnings


def test_few_jobs_give_no_interval_and_unfinished_ones_a_bound():
    made = simulate(jobs(50, load=9), machines([[8]]), "fifo+first_fit", until=40.0)
    replay = Replay((entry("a", made, 0.1), entry("b", made, 0.1)))
    warnings = " ".join(replay.warnings())
    assert "too few for intervals" in warnings
    assert "its mean is a lower bound" in warnings
    assert replay.differences() == []
    assert "mean_low" not in replay.rows()[0]


def test_waits_longer_than_a_block_are_said_to_make_intervals_narrow():
    made = simulate(jobs(300, load=20), machines([[8]]), "fifo+first_fit+strict")
    assert any("too narrow" in line for line in Replay((entry("a", made, 0.1),)).warnings())


def test_the_per_job_table_has_every_job(tmp_path, replayed):
    _, schedules = replayed
    with JobsFile(tmp_path / "jobs.csv", 10.0) as file:
        for rule, made in schedules.items():
            file.add(rule, made)
    rows = list(csv.DictReader((tmp_path / "jobs.csv").open(encoding="utf-8")))
    made = schedules["sjf+best_fit+skip"]
    mine = [row for row in rows if row["policy"] == "sjf+best_fit+skip"]
    assert len(rows) == 3 * len(made.status)
    assert [float(row["wait"]) for row in mine] == pytest.approx(
        (made.start - made.workload.arrival).tolist(), abs=1e-5
    )
    assert {row["machines"] for row in mine} == {"m0", "m1", "m2"}
    assert {row["status"] for row in mine} == {"finished"}


def test_a_per_job_table_that_is_broken_off_is_not_left_behind(tmp_path, replayed):
    file = JobsFile(tmp_path / "jobs.csv", 10.0)
    file.add("x", next(iter(replayed[1].values())))
    assert not (tmp_path / "jobs.csv").exists()
    file.__exit__(KeyboardInterrupt)
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_a_report(tmp_path, replayed):
    replay, schedules = replayed
    small = next(iter(schedules.values()))
    paths = report.write(replay, tmp_path, report.Origin("jobs on machines", ("a <fact>",), "s"), small)
    assert sorted(path.name for path in paths) == sorted(path.name for path in tmp_path.iterdir())
    page = (tmp_path / report.HTML).read_text(encoding="utf-8")
    assert page.count("data:image/png") == 3
    assert "a &lt;fact&gt;" in page
    rows = list(csv.DictReader((tmp_path / report.CSV).open(encoding="utf-8")))
    means = [row["bounded_slowdown.mean"] for row in rows]
    assert [float(mean) for mean in means] == pytest.approx(replay.resampled.means.tolist())
    policies = json.loads((tmp_path / report.JSON).read_text(encoding="utf-8"))["policies"]
    assert policies["sjf+best_fit+skip"]["sla"]["violation_rate_all"] is None


def test_tables_are_ranked_by_the_mean(replayed, capsys):
    report.print_report(replayed[0], "s")
    lines = capsys.readouterr().out.splitlines()
    first = lines.index(next(line for line in lines if line.startswith("-----"))) + 1
    assert [line.split()[0] for line in lines[first : first + 3]] == [
        replayed[0].entries[i].label for i in np.argsort(replayed[0].resampled.means)
    ]


def test_downsampling_keeps_means():
    rows = np.random.default_rng(0).random((1213, 7))
    small = plots.downsampled(rows, 250)
    assert len(small) <= 250
    assert small[0] == pytest.approx(rows[:5].mean(0))
    assert small[-1] == pytest.approx(rows[5 * (len(small) - 1) :].mean(0))


def test_a_gantt_chart_has_no_bar_upon_another(replayed):
    made = next(iter(replayed[1].values()))
    bars = plots._bars(made)
    assert len(bars) == len(made.status)
    for i, (lane, machine, _, start, stop, height) in enumerate(bars):
        for lane2, machine2, _, start2, stop2, height2 in bars[:i]:
            if machine == machine2 and start < stop2 and start2 < stop:
                assert lane + height <= lane2 + 1e-9 or lane2 + height2 <= lane + 1e-9
        assert lane + height <= 1 + 1e-9


def test_a_gantt_chart_of_many_jobs_is_refused():
    count = plots.GANTT_JOBS + 1
    made = schedule(np.arange(count), np.ones(count), [[1]] * count, np.arange(count), [[1]])
    with pytest.raises(UserError, match="too many for a Gantt chart"):
        plots.draw_gantt(None, made)


def test_heat_of_a_thousand_machines_adds_up_to_the_use():
    made = simulate(jobs(3000, load=30), machines([[4]] * 1000), "fifo+best_fit+skip")
    found = heat(made, 50)
    work = made.workload.duration @ made.workload.demand[:, 0]
    assert found.share.sum() * 4 * (found.edges[1] - found.edges[0]) == pytest.approx(work)
