"""Withheld jobs: hand-made cases, the mask of a played environment as oracle, rules that never withhold."""

import numpy as np
import pytest
from outcomes import make_outcome

from schedrl import heuristics
from schedrl.envs.deeprm import DeepRMSettings, play
from schedrl.evaluation.evaluate import sequences_of
from schedrl.evaluation.withholding import withholding
from schedrl.settings import UserError
from schedrl.sim.deeprm.outcome import JobStatus

FINISHED, DROPPED = JobStatus.FINISHED, JobStatus.DROPPED


def test_a_job_that_waits_beside_room_is_withheld_until_it_starts():
    # The long one (1 unit of 10) could start at 0 and does at 2; the short one starts at once.
    found = withholding(make_outcome([(0, 1, 1, FINISHED), (0, 14, 12, FINISHED)], end=14), 10)
    assert (found.steps, found.withheld_steps) == (14, 2)
    assert found.job_steps[12] == 2
    assert found.jobs.tolist() == [0] * 12 + [1]
    assert found.arrived[1] == found.arrived[12] == 1
    assert found.share_of_steps == 2 / 14
    assert (found.share_of_jobs(1, 3), found.share_of_jobs(10, 15)) == (0, 1)
    assert (found.share_of_withheld(1, 3), found.share_of_withheld(10, 15)) == (0, 1)
    assert np.isnan(found.share_of_jobs(4, 9))


def test_no_room_in_one_resource_is_no_withholding():
    demand = [[[4, 1], [7, 1]]]
    found = withholding(make_outcome([(0, 2, 2, FINISHED), (0, 3, 1, FINISHED)], end=3, demand=demand), 10)
    assert found.withheld_steps == 0
    assert np.isnan(found.share_of_withheld(1, 3))


def test_only_jobs_in_slots_count_and_dropped_ones_hold_none():
    jobs = [(0, None, 1, DROPPED), (0, 3, 2, FINISHED), (0, 2, 1, FINISHED)]
    assert withholding(make_outcome(jobs, end=3), 1).job_steps.tolist() == [0, 0, 1]
    assert withholding(make_outcome(jobs, end=3), 2).job_steps.tolist() == [0, 1, 1]


def test_jobs_left_behind_are_withheld_to_the_end():
    found = withholding(make_outcome([(1, None, 3, JobStatus.WAITING)], end=5), 10)
    assert (found.withheld_steps, found.steps) == (4, 5)


def test_reservations_are_refused():
    with pytest.raises(UserError, match="allow_reservation"):
        withholding(make_outcome([(0, 1, 1, FINISHED)], end=1), 10, allow_reservation=True)


@pytest.mark.parametrize("name", ["sjf", "packer", "tetris", "fifo"])
def test_work_conserving_rules_never_withhold(name):
    settings = DeepRMSettings(backlog_size=3)
    found = withholding(heuristics.get(name).run(settings, sequences_of(settings, 40)), 10)
    assert found.steps > 1000
    assert found.withheld_steps == 0


@pytest.mark.parametrize("name", ["sjf_hold", "tsl", "defer"])
def test_holding_rules_withhold_long_jobs_only(name):
    settings = DeepRMSettings()
    found = withholding(heuristics.get(name).run(settings, sequences_of(settings, 40)), 10)
    assert found.share_of_steps > 0.1
    assert found.share_of_jobs(1, 9) == 0
    assert found.share_of_withheld(10, 15) == 1


class Witness:
    """Holds about two times in three, and notes what the mask would have allowed whenever time moves on."""

    representation = "state"

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.steps, self.counts = 0, np.zeros(16, int)

    def predict(self, obs, deterministic=True):
        """Choose, and note the jobs that could start beside a no-op."""
        noise = self.rng.random(obs["action_mask"].shape)
        noise[:, -1] *= 3
        actions = np.where(obs["action_mask"], noise, -1).argmax(axis=1)
        held = obs["startable"].astype(bool) & (actions == noise.shape[1] - 1)[:, None]
        self.steps += int(held.any(axis=1).sum())
        self.counts += np.bincount(obs["duration"][held], minlength=16)
        return actions


@pytest.mark.parametrize(
    "limits",
    [{}, {"num_job_slots": 3, "backlog_size": 5}, {"termination": "no_new_job"}, {"num_resources": 3}],
)
def test_it_agrees_with_the_masks_seen_while_playing(limits):
    settings, witness = DeepRMSettings(idle_limit=None, **limits), Witness()
    found = withholding(play(witness, settings, sequences_of(settings, 20)), settings.num_job_slots)
    assert witness.steps > 100
    assert found.withheld_steps == witness.steps
    assert found.job_steps.tolist() == witness.counts[: len(found.job_steps)].tolist()
