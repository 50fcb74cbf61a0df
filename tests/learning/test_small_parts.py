"""Budget, schedules, optimiser, logger, run folder."""

import json

import numpy as np
import pytest

from schedrl.learning import networks, optimisers
from schedrl.learning.batches import minibatches
from schedrl.learning.budget import Budget
from schedrl.learning.kept_logs import kept_logs
from schedrl.learning.logger import Logger
from schedrl.learning.run_description import describe_run
from schedrl.learning.run_folder import Run
from schedrl.learning.schedules import scheduled
from schedrl.settings import UserError


def test_budget_counts_decisions_or_episodes():
    budget = Budget(total_steps=100)
    budget.spend(60, 2)
    assert (budget.progress, budget.done) == (0.6, False)
    budget.spend(60, 2)
    assert (budget.progress, budget.done) == (1.0, True)
    by_episodes = Budget(num_episodes=4)
    by_episodes.load_state(budget.state())
    assert by_episodes.done
    with pytest.raises(UserError, match="budget"):
        Budget()
    with pytest.raises(UserError, match="total_steps is 0"):
        Budget(total_steps=0)


def test_minibatches_use_every_row_once():
    batch = {"obs": {"x": np.arange(10)}, "action": np.arange(10), "advantage": -np.arange(10)}
    parts = list(minibatches(batch, 4, np.random.default_rng(0)))
    assert [len(part["action"]) for part in parts] == [5, 5]
    assert sorted(np.concatenate([part["action"] for part in parts])) == list(range(10))
    for part in parts:
        np.testing.assert_array_equal(part["obs"]["x"], part["action"])
        np.testing.assert_array_equal(part["advantage"], -part["action"])
    (whole,) = minibatches(batch, None, np.random.default_rng(0))
    np.testing.assert_array_equal(whole["action"], np.arange(10))


def test_schedules():
    assert scheduled("constant", 2.0, 0.0, 0.9) == 2.0
    assert scheduled("linear", 2.0, 1.0, 0.25) == 1.75
    assert scheduled("cosine", 2.0, 0.0, 0.5) == pytest.approx(1.0)
    assert scheduled("linear", 2.0, 1.0, 7.0) == 1.0
    with pytest.raises(ValueError, match="unknown schedule"):
        scheduled("step", 1.0, 0.0, 0.5)


def test_gradients_are_clipped_by_their_norm():
    clipped, norm = optimisers.clip_norm(networks.NUMPY, np.array([3.0, 4.0]), 0.5)
    assert norm == 5.0
    np.testing.assert_allclose(clipped, [0.3, 0.4])
    same, _ = optimisers.clip_norm(networks.NUMPY, np.array([0.03, 0.04]), 0.5)
    np.testing.assert_allclose(same, [0.03, 0.04])


def test_adam_by_hand():
    zero = np.zeros(1)
    w, m, v = optimisers.adam(np.array([1.0]), np.array([2.0]), zero, zero, 1, 0.1)
    # The first step is learning_rate * g / (|g| + epsilon), whatever the gradient's size.
    assert w[0] == pytest.approx(1.0 - 0.1 * 2.0 / (2.0 + 1e-5))
    w, m, v = optimisers.adam(w, np.array([-1.0]), m, v, 2, 0.1)
    m2, v2 = 0.9 * 0.2 - 0.1, 0.999 * 0.004 + 0.001
    step = 0.1 * (m2 / (1 - 0.81)) / (np.sqrt(v2 / (1 - 0.999**2)) + 1e-5)
    assert w[0] == pytest.approx(1.0 - 0.1 * 2.0 / (2.0 + 1e-5) - step)


RECORD = {"decisions": 10.0, "episode_return": -1.5}


def test_logger_writes_and_cuts_back(tmp_path):
    seen = []
    logger = Logger(tmp_path, seen.append, tensorboard=False)
    logger.log(RECORD, {"r": np.array([1.0, 2.0]), "slowdown": np.array([3.0, 4.0])})
    state = logger.state()
    logger.log(RECORD | {"decisions": 20.0}, {"r": np.array([5.0]), "slowdown": np.array([6.0])})
    logger.close()
    assert len(seen) == 2
    np.testing.assert_array_equal(np.load(tmp_path / "reward_history.npy"), [1, 2, 5])
    assert (tmp_path / "metrics.csv").read_text() == "decisions,episode_return\n10,-1.5\n20,-1.5\n"

    resumed = Logger(tmp_path, tensorboard=False)
    resumed.load_state(kept_logs(tmp_path, state, 10), 10)
    resumed.log(RECORD | {"decisions": 30.0}, {})
    resumed.close()
    np.testing.assert_array_equal(np.load(tmp_path / "slowdown_history.npy"), [3, 4])
    assert (tmp_path / "metrics.csv").read_text() == "decisions,episode_return\n10,-1.5\n30,-1.5\n"


def test_run_json_and_run_id(tmp_path):
    run = Run(
        Budget(10), seed=4, folder=tmp_path / "m", settings={"algorithm": {"gamma": 1.0}}, tensorboard=False
    )
    run.logger.close()
    written = json.loads((tmp_path / "m" / "run.json").read_text())
    assert written["seed"] == 4
    assert written["versions"]["numpy"] == np.__version__
    assert written == describe_run({"algorithm": {"gamma": 1.0}}, 4)
    assert written["run_id"] != describe_run({"algorithm": {"gamma": 0.9}}, 4)["run_id"]


def test_run_folder_refusals(tmp_path):
    with pytest.raises(UserError, match="no checkpoint"):
        Run(Budget(10), folder=tmp_path / "none", resume=True)
    assert not (tmp_path / "none").exists()  # nothing changed on disk
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        Run(Budget(10), folder=tmp_path / "file" / "model")
    (tmp_path / "old" / "checkpoints").mkdir(parents=True)
    (tmp_path / "old" / "checkpoints" / "step_000000000001.npz").write_text("")
    with pytest.raises(UserError, match="already holds a run"):
        Run(Budget(10), folder=tmp_path / "old")


def test_a_run_stopped_before_its_first_update_can_be_resumed(tmp_path):
    class Part:
        def state(self):
            return {"x": np.zeros(1)}

        def load_state(self, state):
            self.x = state["x"]

        def save_policy(self, path, **header):
            path.touch()

        def export(self, path):
            pass

    run = Run(Budget(100), 0, tmp_path / "run", tensorboard=False)
    run.request_stop()
    run.finish(model=Part())
    again = Run(Budget(100), 0, tmp_path / "run", resume=True, tensorboard=False)
    part = Part()
    again.restore(model=part)
    assert again.budget.decisions == 0
    np.testing.assert_array_equal(part.x, np.zeros(1))
