from dataclasses import replace

import numpy as np

from schedrl.evaluation import refusal
from schedrl.sim.deeprm.outcome import JobStatus
from tests.evaluation.outcomes import make_outcome, random_outcome


def leave(outcome, which, status=JobStatus.WAITING):
    return replace(
        outcome,
        status=np.where(which, status, outcome.status).astype(np.int8),
        start=np.where(which, -1, outcome.start),
        finish=np.where(which, -1, outcome.finish),
    )


def test_a_clean_policy_has_no_warning():
    found = refusal.detect(random_outcome(0))
    assert found.warnings == ()
    assert (found.waiting, found.dropped, found.share, found.step) == (0, 0, 0.0, None)


def test_refusing_long_jobs_is_named_with_numbers():
    outcome = random_outcome(0)
    long = outcome.duration >= 10
    found = refusal.detect(leave(outcome, long))
    assert found.waiting == long.sum()
    assert found.share == long.mean()
    assert found.hard_share > 0.9
    assert "refuses hard jobs" in found.warnings[0]
    assert str(long.sum()) in found.warnings[0]


def test_overload_is_told_from_refusal():
    outcome = random_outcome(0)
    anyone = np.random.default_rng(0).random(outcome.status.shape) < 0.2
    found = refusal.detect(leave(outcome, anyone))
    assert found.hard_share < 0.4
    assert found.warnings[0].startswith("leaves jobs behind")


def test_dropped_jobs_are_named():
    outcome = random_outcome(0)
    found = refusal.detect(leave(outcome, outcome.duration >= 10, JobStatus.DROPPED))
    assert found.waiting == 0
    assert found.dropped > 0
    assert found.warnings


def test_a_step_in_the_curve_is_found():
    """Every long job finishes, but only after all else: a gap between slowdown 3 and 20."""
    jobs = [(i, i + 2 * d, d, JobStatus.FINISHED) for i in range(90) for d in (1, 2)]
    jobs += [(i, i + 10 * 20, 10, JobStatus.FINISHED) for i in range(12)]
    found = refusal.detect(make_outcome(jobs, 400))
    assert found.step == (2.0, 20.0)
    assert found.step_hard_share == 1.0
    assert "holds hard jobs back" in found.warnings[0]


def test_window_and_empty():
    outcome = make_outcome([(5, None, 2, JobStatus.WAITING), (9, 11, 2, JobStatus.FINISHED)], 20)
    assert refusal.detect(outcome, (6, 20)).waiting == 0
    assert refusal.detect(outcome, (0, 6)).waiting == 1
    assert refusal.detect(outcome, (12, 20)).warnings == ()


def test_a_few_jobs_wait_when_a_window_ends():
    jobs = [(i, i + 2, 2, JobStatus.FINISHED) for i in range(2000)]
    one = make_outcome([*jobs, (5, None, 9, JobStatus.WAITING)], 3000)
    assert refusal.detect(one, (0, 2000)).warnings == ()
    assert refusal.detect(one).warnings
    assert refusal.detect(
        make_outcome([*jobs, *[(5, None, 9, JobStatus.WAITING)] * 3], 3000), (0, 2000)
    ).warnings
