"""The measures of a schedule against values computed by others, and on small cases by hand."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from schedules import machines, schedule

from schedrl.evaluation.cluster import measure, timeline
from schedrl.evaluation.definitions import jain, over_time, spread
from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.schedule import REJECTED, UNFINISHED
from schedrl.workload import UNKNOWN, Workload

GOLDEN = Path(__file__).parent / "golden"
PRIORITY = {"high": 2.0, "low": 1.0}
RENAMED = {"bounded_slowdown": "bounded_slowdown_tau10", "memory": "mem", "2": "high", "1": "low"}


@pytest.fixture
def golden():
    rows = list(csv.DictReader((GOLDEN / "schedule.csv").open(encoding="utf-8")))

    def column(name):
        return np.array([float(row[name] or "nan") for row in rows])

    made = schedule(
        column("submit"),
        column("run"),
        np.column_stack([column("cpu"), column("mem")]),
        column("start"),
        [[4, 8]],
        end=200.0,
        user=[row["user"] for row in rows],
        priority=[PRIORITY[row["priority"]] for row in rows],
        deadline=column("deadline"),
        id=[row["job_id"] for row in rows],
    )
    return made, json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


def test_golden_metrics(golden):
    made, expected = golden
    found = measure(made, tau=10)
    assert {name: value["mean"] for name, value in found["utilisation"].items()} == pytest.approx(
        {"cpu": expected["utilisation"]["cpu"], "memory": expected["utilisation"]["mem"]}
    )
    for name in ("nb_jobs", "finished", "unfinished", "rejected", "success_rate", "makespan", "window"):
        assert found[name] == pytest.approx(expected[name]), name
    assert found["throughput_per_hour"] == pytest.approx(expected["throughput_per_hour"])
    for name in ("wait", "turnaround", "slowdown", "bounded_slowdown"):
        wanted = {k: v for k, v in expected[RENAMED.get(name, name)].items() if k != "values"}
        assert {key: found[name][key] for key in wanted} == pytest.approx(wanted), name
    sla, wanted = found["sla"], expected["sla"]
    rates = {RENAMED[level]: row["violation_rate"] for level, row in sla["by_priority"].items()}
    assert rates == pytest.approx(wanted["by_priority"])
    assert (sla["severity_max"], sla["severity_mean_over_violations"]) == (
        wanted["severity_max_s"],
        wanted["severity_mean_over_violations_s"],
    )
    for name in ("violation_rate_all", "unfinished_past_deadline", "violation_rate_counting_unfinished"):
        assert sla[name] == pytest.approx(wanted[name]), name
    assert found["fairness"]["jain_over_user_mean_bsld"] == pytest.approx(
        expected["jain_over_user_mean_bsld"]
    )
    assert found["fairness"]["user_mean_bsld"] == pytest.approx(expected["user_mean_bsld"])


def test_no_golden_value_is_left_out(golden):
    compared = {"nb_jobs", "finished", "unfinished", "rejected", "success_rate", "makespan", "window", "wait"}
    compared |= {"turnaround", "slowdown", "bounded_slowdown_tau10", "utilisation", "sla", "user_mean_bsld"}
    compared |= {"jain_over_user_mean_bsld", "throughput_per_hour"}
    assert set(golden[1]) - {"capacity"} == compared, "the capacity is what the schedule is made of"


def test_values_of_single_jobs(golden):
    from schedrl.evaluation.cluster.metrics import bounded_slowdowns

    made, expected = golden
    values = dict(zip(made.workload.id.tolist(), bounded_slowdowns(made, 10.0).tolist(), strict=True))
    assert np.isnan(values.pop("f"))
    assert values == pytest.approx(expected["bounded_slowdown_tau10"]["values"])


def test_an_unfinished_job_counts_with_its_lower_bound(golden):
    found = measure(golden[0])["bounded_slowdown"]
    assert found["mean"] == pytest.approx(8.28 / 5)
    assert found["mean_with_bounds"] == pytest.approx((8.28 + 50 / 40) / 6)


def test_starvation_counts_who_still_waits():
    made = schedule([0, 0, 10], [5, 5, 5], [[1]] * 3, [0, 30, np.nan], [[4]], end=100.0)
    found = measure(made, wait_limit=30)["starvation"]
    assert found == {"max_wait": 90.0, "limit": 30.0, "beyond_limit": 1}
    assert measure(made, wait_limit=29.9)["starvation"]["beyond_limit"] == 2


def test_jobs_that_had_not_come_at_the_cut_count_for_nothing_but_the_number():
    made = schedule([0, 50], [5, 5], [[1]] * 2, [0, np.nan], [[4]], end=20.0)
    found = measure(made)
    assert (found["finished"], found["unfinished"]) == (1, 1)
    assert found["starvation"]["max_wait"] == 0.0
    assert found["wait"]["censored_max"] is None
    assert found["bounded_slowdown"]["mean_with_bounds"] == 1.0


def test_what_is_not_defined_is_none():
    made = schedule([0], [5], [[1, 1]], [np.nan], [[4]], end=0.0, status=[REJECTED])
    found = measure(made)
    for name in ("makespan", "throughput", "throughput_per_hour", "decision_latency"):
        assert found[name] is None, name
    for name in ("wait", "turnaround", "slowdown", "bounded_slowdown"):
        assert (found[name]["n"], found[name]["mean"], found[name]["max"]) == (0, None, None)
    assert found["fairness"]["jain_over_user_mean_bsld"] is None
    assert found["sla"]["violation_rate_all"] is None
    assert found["utilisation"]["cpu"]["mean"] is None
    json.dumps(found, allow_nan=False)


def test_use_and_queue_are_weighted_by_time():
    # 3 of 4 cores for 10 s, then 1 of 4 for 30 s; one job waits from 2 to 10.
    made = schedule([0, 2], [10, 30], [[3], [1]], [0, 10], [[4]])
    used = measure(made)["utilisation"]["cpu"]
    assert used == pytest.approx(
        {"mean": (0.75 * 10 + 0.25 * 30) / 40, "p50": 0.25, "p95": 0.75, "max": 0.75}
    )
    queue = measure(made)["queue"]
    assert queue == pytest.approx({"mean": 8 / 40, "p50": 0, "p95": 1, "max": 1})


def test_weighted_percentiles_are_values_that_occurred():
    assert over_time(np.array([5.0, 1.0]), np.array([1.0, 1.0])) == {
        "mean": 3.0,
        "p50": 1.0,
        "p95": 5.0,
        "max": 5.0,
    }
    assert over_time(np.array([7.0, 1.0]), np.array([0.0, 2.0]))["max"] == 1.0
    assert over_time(np.array([1.0]), np.array([0.0]))["mean"] is None
    assert spread(np.array([np.nan]))["p99"] is None
    assert jain(np.zeros(3)) is None
    assert jain(np.array([1.0, 0, 0, 0])) == 0.25


def test_heat_is_the_exact_average_of_the_busiest_resource():
    # Machine 1: 2 of 4 cores and 8 of 8 GB over 0..5; machine 0: 4 of 4 cores over 2.5..10.
    made = schedule([0, 0], [5, 7.5], [[2, 8], [4, 1]], [0, 2.5], [[4, 8], [4, 8]], machine=[1, 0])
    heat = timeline.heat(made, columns=4)
    assert heat.edges == pytest.approx([0, 2.5, 5, 7.5, 10])
    assert heat.share == pytest.approx(np.array([[0, 1, 1, 1], [1, 1, 0, 0]]))
    assert timeline.heat(made, columns=2).share == pytest.approx(np.array([[0.5, 1], [1, 0]]))


def test_sums_over_machines_and_over_time_agree():
    rng = np.random.default_rng(3)
    workload = Workload(
        np.sort(rng.uniform(0, 100, 60)),
        rng.choice([0.0, 3, 20], 60),
        np.column_stack([rng.integers(1, 4, 60), rng.integers(1, 9, 60)]),
        instances=rng.integers(1, 3, 60),
        time_unit="s",
    )
    made = simulate(workload, machines([[4, 16], [8, 8], [6, 12]]), until=90.0)
    assert (made.status == UNFINISHED).any()
    used = timeline.usage(made)
    stop = np.where(np.isnan(made.finish), 90.0, made.finish)
    ran = np.where(np.isnan(made.start), 0.0, stop - made.start)
    work = (ran * workload.instances) @ workload.demand
    assert used.lasted @ used.value == pytest.approx(work)
    found = measure(made)
    length = found["window"][1] - found["window"][0]
    assert found["utilisation"]["memory"]["mean"] == pytest.approx(work[1] / (36 * length))
    waited = np.where(np.isnan(made.start), 90.0, made.start) - workload.arrival
    arrived = workload.arrival <= 90.0
    assert found["queue"]["mean"] == pytest.approx(waited[arrived].sum() / length)


def test_no_deadline_no_verdict():
    made = schedule([0, 0], [1, 1], [[1], [1]], [0, 0], [[4]], deadline=[UNKNOWN, UNKNOWN])
    assert measure(made)["sla"]["n"] == 0
    assert measure(made)["sla"]["violation_rate_counting_unfinished"] is None
