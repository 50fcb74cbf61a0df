"""Hand-computed measures: case 28, the golden schedule, and what must not be left out."""

import csv
import json
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.evaluation import metrics
from schedrl.evaluation.metrics import summarise
from schedrl.evaluation.plots import cdf
from schedrl.sim.deeprm.outcome import JobStatus
from tests.evaluation.outcomes import make_outcome, random_outcome

DONE, RUNNING, WAITING, DROPPED = JobStatus.FINISHED, JobStatus.RUNNING, JobStatus.WAITING, JobStatus.DROPPED
CASE_28 = [(0, 3, 3, DONE), (0, 10, 4, DONE), (5, None, 2, WAITING), (6, 7, 1, DONE)]


def test_case_28_every_arrived_job_counts():
    outcome = make_outcome(CASE_28, end=20)
    values = metrics.slowdowns(outcome)
    assert values[metrics.finished(outcome)].tolist() == [1.0, 2.5, 1.0]
    assert values[0, 2] == 7.5, "an unfinished job counts with (E - arrival) / duration"
    summary = summarise(outcome)
    assert (summary.mean, summary.mean_finished) == (3.0, 1.5)
    assert (summary.arrived, summary.finished, summary.unfinished, summary.complete) == (4, 3, 1, False)
    assert metrics.slowdowns(outcome, floor=True)[metrics.finished(outcome)].tolist() == [1, 2, 1]
    assert cdf(values)[1][-1] == 1.0
    assert cdf(values)[0].tolist() == [1, 1, 2.5, 7.5]


def test_case_28_dropped_jobs_are_counted_and_listed():
    summary = summarise(make_outcome([*CASE_28, (8, None, 3, DROPPED), (10, None, 5, DROPPED)], end=20))
    assert (summary.arrived, summary.unfinished, summary.dropped) == (6, 1, 2)
    assert summary.mean == pytest.approx((1 + 2.5 + 7.5 + 1 + 4 + 2) / 6)
    assert summary.mean_finished == 1.5


def test_jobs_still_to_come_and_padding_do_not_count():
    base = make_outcome(CASE_28, end=20)
    more = make_outcome([[*CASE_28, (25, None, 1, JobStatus.PENDING)], [(0, 1, 1, DONE)]], end=[20, 1])
    assert summarise(more).arrived == summarise(base).arrived + 1
    assert np.isnan(metrics.slowdowns(more)[0, 4])
    assert np.isnan(metrics.slowdowns(more)[1, 1:]).all()


def test_a_job_that_would_finish_after_the_end_is_unfinished():
    """Whatever its status says: a booked finish beyond the end of the episode has not happened."""
    for status in (RUNNING, JobStatus.RESERVED, DONE):
        summary = summarise(make_outcome([(4, 24, 10, status)], end=20))
        assert (summary.finished, summary.unfinished) == (0, 1)
        assert summary.mean == pytest.approx((20 - 4) / 10)


def test_job_of_duration_zero_has_no_slowdown():
    summary = summarise(make_outcome([(0, 2, 2, DONE), (1, 1, 0, DONE)], end=2))
    assert (summary.arrived, summary.finished, summary.mean) == (2, 2, 1.0)


def test_nothing_arrived():
    summary = summarise(make_outcome([(9, None, 1, JobStatus.PENDING)], end=3))
    assert summary.arrived == 0
    assert np.isnan(summary.mean)
    assert summary.utilisation == (0.0, 0.0)


GOLDEN = """job_id,submit,start,finish,run,cpu,mem
a,0,0,100,100,2,4
b,10,10,14,4,2,1
c,10,14,64,50,2,2
d,20,100,200,100,4,8
e,30,64,64,0,1,1
f,150,,,40,4,8
"""


def test_golden_schedule():
    """Six jobs on 4 CPUs and 8 GB over 200 s: values from the project's golden metrics."""
    rows = list(csv.DictReader(StringIO(GOLDEN)))
    jobs = [
        (
            int(r["submit"]),
            int(r["finish"]) if r["finish"] else None,
            int(r["run"]),
            DONE if r["finish"] else WAITING,
        )
        for r in rows
    ]
    outcome = make_outcome(jobs, 200, (4, 8), [[[int(r["cpu"]), int(r["mem"])] for r in rows]])
    summary, done = summarise(outcome), metrics.finished(outcome)
    assert summary.utilisation == pytest.approx((0.885, 0.815))
    assert (summary.finished, summary.unfinished) == (5, 1)
    values = metrics.slowdowns(outcome)[done]
    assert np.nanmean(values) == pytest.approx(1.22)
    assert np.isfinite(values).sum() == 4
    wait = metrics.waits(outcome)
    assert wait[done].mean() == pytest.approx(23.6)
    assert np.percentile(wait[done], [50, 95, 99]) == pytest.approx([4.0, 70.8, 78.16])
    assert wait[0, 5] == 50
    assert metrics.completion_times(outcome)[done].mean() == pytest.approx(74.4)
    assert np.percentile(metrics.completion_times(outcome)[done], 95) == pytest.approx(164.0)


def test_usage_over_time():
    outcome = make_outcome([(0, 2, 2, DONE), (0, 5, 3, RUNNING)], 4, demand=[[[3, 1], [2, 9]]])
    assert metrics.usage(outcome)[0].tolist() == [[3, 1], [3, 1], [2, 9], [2, 9]]
    assert metrics.utilisation(outcome) == pytest.approx([10 / 40, 20 / 40])


def test_window_counts_by_arrival():
    summary = summarise(make_outcome(CASE_28, 20), window=(5, 7))
    assert summarise(make_outcome(CASE_28, 20), window=(1, 6)).arrived == 1
    assert (summary.arrived, summary.finished, summary.unfinished) == (2, 1, 1)
    assert summary.mean == (7.5 + 1) / 2


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_invariants(seed):
    """Counts add up, usage integrates to utilisation, waiting never shrinks a mean, floors are below."""
    outcome = random_outcome(seed, 5, 8)
    rng = np.random.default_rng(seed)
    left = rng.random(outcome.status.shape) < 0.3
    outcome = replace(
        outcome,
        status=np.where(left, rng.choice([WAITING, DROPPED], left.shape), outcome.status).astype(np.int8),
        start=np.where(left, -1, outcome.start),
        finish=np.where(left, -1, outcome.finish),
    )
    s = summarise(outcome)
    assert s.finished + s.unfinished + s.dropped + s.rejected == s.arrived == outcome.status.size
    used = metrics.usage(outcome).sum(axis=(0, 1)) / (outcome.capacity * outcome.end_time.sum())
    assert used == pytest.approx(metrics.utilisation(outcome))
    assert (metrics.slowdowns(outcome, floor=True) <= metrics.slowdowns(outcome)).all()
    later = replace(outcome, end_time=outcome.end_time + 50)
    assert s.finished == outcome.status.size or summarise(later).mean > s.mean
    sums, counts = metrics.sums_and_counts(metrics.slowdowns(outcome))
    assert sums.sum() / counts.sum() == pytest.approx(s.mean)


def test_refusing_long_jobs_does_not_pay():
    """The planted fault: a policy that drops its long jobs from the list must not look better."""
    honest = random_outcome(0)
    long = honest.duration >= 10
    refuser = replace(
        honest,
        status=np.where(long, WAITING, honest.status).astype(np.int8),
        start=np.where(long, -1, honest.start),
        finish=np.where(long, -1, honest.finish),
        end_time=honest.end_time + 200,
    )
    assert summarise(refuser).mean > summarise(honest).mean
    assert summarise(refuser).unfinished == long.sum()


def test_cases_of_the_shared_folder(shared_dir):
    """The same expectations read from the shared cases, where that folder exists."""
    expected = json.loads((shared_dir / "cases/28-deeprm-slowdown-report/expected.json").read_text())[
        "expected"
    ]
    summary = summarise(make_outcome(CASE_28, end=20))
    assert (summary.mean, summary.mean_finished) == (
        expected["mean_with_censored"],
        expected["mean_finished"],
    )
    golden = json.loads((shared_dir / "reference/golden-metrics/expected.json").read_text())
    assert (golden["slowdown"]["mean"], golden["wait"]["mean"]) == (1.22, 23.6)
