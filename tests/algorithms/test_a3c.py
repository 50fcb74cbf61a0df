"""A3C's own numbers: the shared step by hand, staleness, workers that die, settings alive."""

import multiprocessing
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.vector import VectorWrapper
from small_runs import small_settings, start, trained

from a3c.crew import Crew, Mail, crew_for
from a3c.model import AHEAD, EPISODE, ROW, Shared, gradient_of
from a3c.train import train
from a3c.worker import Worker
from schedrl import registry
from schedrl.envs.probes import ActionByObservation, MaskedBestAction
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.batches import decisions_of
from schedrl.learning.budget import Budget
from schedrl.learning.rollout import Collector, NumericsError
from schedrl.learning.run_folder import Run
from schedrl.learning.shared_vectors import write_text
from schedrl.learning.worker_processes import Death
from schedrl.settings import UserError


def model_and_shared(**changes) -> tuple[ActorCritic, Shared]:
    settings = small_settings("a3c", hidden=(4,), **changes)
    model = ActorCritic(MaskedBestAction(4).single_observation_space, settings, 0)
    shared = Shared(model, settings)
    shared.begin(model, Budget(settings.total_steps))
    return model, shared


# -- the shared step -----------------------------------------------------------------------------------------


def test_two_workers_steps_of_adam_by_hand():
    _, shared = model_and_shared(num_workers=2, critic_learning_rate=1.5e-2)  # half of the actor's
    start_weights = shared["weights"].copy()
    first, second = (np.random.default_rng(i).normal(size=start_weights.size).astype("f4") for i in (1, 2))
    seen = [shared.updates_by_others(worker) for worker in (0, 1)]  # both read before either applies
    rate = np.full(start_weights.size, 0.1)
    rate[-5:] = 0.05  # the value layer is the last: 4 weights and a bias
    assert shared.apply(first, 0, seen[0], 0.1) == 0
    # m = 0.1 g, v = 0.001 g^2; corrected for the first step they are g and g^2.
    moved = start_weights - rate * first / (np.abs(first) + 1e-5)
    np.testing.assert_allclose(shared["weights"], moved, rtol=1e-4, atol=1e-6)
    assert shared.apply(second, 1, seen[1], 0.2) == 1
    m, v = 0.09 * first + 0.1 * second, 0.000999 * first**2 + 0.001 * second**2
    moved -= 2 * rate * (m / (1 - 0.9**2)) / (np.sqrt(v / (1 - 0.999**2)) + 1e-5)
    np.testing.assert_allclose(shared["weights"], moved, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(shared["m"], m, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(shared["v"], v, rtol=1e-4, atol=1e-9)
    np.testing.assert_array_equal(shared["updates"], [1, 1])


def test_shared_rmsprop_by_hand():
    _, shared = model_and_shared(num_workers=2, optimiser="rmsprop")
    weights, gradient = shared["weights"].copy(), np.ones_like(shared["weights"])
    shared.apply(gradient, 0, 0, 0.1)
    shared.apply(2 * gradient, 1, 0, 0.1)
    v = (0.1, 0.9 * 0.1 + 0.1 * 4)
    expected = weights - 0.1 / np.sqrt(v[0]) - 0.2 / np.sqrt(v[1])
    np.testing.assert_allclose(shared["weights"], expected, rtol=1e-4, atol=1e-5)
    assert not shared["m"].any()


def test_staleness_counts_the_updates_of_others_only():
    _, shared = model_and_shared(num_workers=3)
    gradient = np.zeros_like(shared["weights"])
    seen = shared.updates_by_others(0)
    for worker in (1, 2, 0, 1):
        shared.apply(gradient, worker, shared.updates_by_others(worker), 0.1)
    assert shared.apply(gradient, 0, seen, 0.1) == 3


def test_the_gradient_points_where_the_loss_falls():
    model, _ = model_and_shared(max_grad_norm=1e9, use_tf_function=False)
    gradient = gradient_of(model, model.settings)
    collector = Collector(MaskedBestAction(16), 4, 0)
    batch = decisions_of(collector.collect(model.act, model.values), model.settings)
    slope, terms = gradient(batch, 0.02, 0)

    def loss(weights: np.ndarray) -> float:
        model.weights.assign(weights)
        found = gradient(batch, 0.02, 0)[1]
        value = model.settings.value_coef * found["value_loss"]
        return found["policy_loss"] + value - 0.02 * found["entropy"]

    weights = model.weights.numpy()
    for seed in range(3):
        direction = np.random.default_rng(seed).normal(size=weights.size).astype("f4")
        difference = (loss(weights + 1e-3 * direction) - loss(weights - 1e-3 * direction)) / 2e-3
        assert slope @ direction == pytest.approx(difference, rel=0.05, abs=0.02)
    assert terms["grad_norm"] == pytest.approx(np.linalg.norm(slope), rel=1e-4)


def test_a_long_gradient_is_cut():
    model, _ = model_and_shared(max_grad_norm=0.01)
    collector = Collector(MaskedBestAction(16), 4, 0)
    batch = decisions_of(collector.collect(model.act, model.values), model.settings)
    slope, terms = gradient_of(model, model.settings)(batch, 0.0, 0)
    assert np.linalg.norm(slope) == pytest.approx(0.01, rel=1e-4)
    assert terms["grad_norm"] > 0.01


# -- one worker ----------------------------------------------------------------------------------------------


def test_one_worker_starts_no_process(monkeypatch):
    def refuse(*_):
        raise AssertionError("a process was started")

    monkeypatch.setattr("schedrl.learning.worker_processes.WorkerProcesses.start", refuse)
    _, records = trained("a3c", "two_actions", total_steps=1_000)
    assert all(record["staleness"] == record["staleness_max"] == 0 for record in records)
    assert records[-1]["decisions"] == 1_024  # the first multiple of 128 past the budget


def test_one_worker_is_a2c():
    a2c, a3c = (registry.get("algorithm_settings", name)() for name in ("a2c", "a3c"))
    assert a2c.to_dict().items() <= a3c.to_dict().items()
    changes = {"total_steps": 1_000, "critic_learning_rate": 1e-2, "normalise_observations": True}
    ends = [
        trained(name, "truncated_or_terminated", **changes)[0].model.weights.numpy()
        for name in ("a2c", "a3c")
    ]
    # One takes its step of Adam in TensorFlow, the other in NumPy: equal but for rounding.
    np.testing.assert_allclose(*ends, rtol=1e-4, atol=3e-5)


def test_a_record_holds_several_updates_and_the_budget_is_kept():
    _, records = trained("a3c", "two_actions", total_steps=1_000, updates_per_record=3)
    assert [record["decisions"] for record in records] == [384, 768, 1_024]


def test_a_wish_to_stop_cuts_no_record():
    run, records = start("a3c", "two_actions", total_steps=1_000, updates_per_record=3)
    found = []
    for record in records:
        found.append(record["decisions"])
        run.request_stop()
    assert found == [384]


def test_a_worker_waits_where_nobody_reads():
    settings = small_settings("a3c", num_envs=1, num_steps=1, hidden=(4,))
    env = MaskedBestAction(1)
    model = ActorCritic(env.single_observation_space, settings, 0)
    shared = Shared(model, settings)
    shared.begin(model, Budget(settings.total_steps))
    worker = Worker(env, model, shared, (None, 10_000))
    for _ in range(4):
        worker.update()
    assert worker.episodes.room == 0  # one decision may end one episode; room is for four rollouts
    shared["stop"][...] = True  # else the next would wait for ever
    worker.update()
    assert shared["decisions"][0] == 4
    assert AHEAD - worker.updates.room == 4


def test_mail_is_averaged_over_updates_and_keeps_what_the_environment_tells():
    _, shared = model_and_shared(num_workers=2)
    mail = Mail(shared)
    shared["told"][:] = [True, True, False]
    for index, staleness in ((0, 0.0), (1, 2.0)):
        row = dict.fromkeys(ROW, float("nan")) | {"decisions": 32.0, "staleness": staleness}
        mail._updates[index].put(np.array([[row[name] for name in ROW]]))
        mail._episodes[index].put(np.array([[index, 7.0, np.nan]]))
    assert mail.collect() == 2
    found = mail.gathered(1.0, replaced=1)
    assert found.decisions == 64
    assert (found.metrics["staleness"], found.metrics["staleness_max"]) == (1.0, 2.0)
    assert found.metrics["workers_replaced"] == 1
    assert {key: list(values) for key, values in found.episodes.items()} == {"r": [0, 1], "l": [7, 7]}
    assert EPISODE[2] == "slowdown"
    assert mail.gathered(1.0, replaced=1) is None


# -- several workers -----------------------------------------------------------------------------------------


def crew(probe=MaskedBestAction, **changes) -> Crew:
    settings = small_settings("a3c", num_workers=2, **changes)
    env = probe(settings.num_envs)
    model = ActorCritic(env.single_observation_space, settings, 0)
    return crew_for(env, model, Shared(model, settings), Run(Budget(settings.total_steps), 0))


def wait_for_both(workers: Crew) -> None:
    """Wait without reading, so that neither of them can get far ahead."""
    deadline = time.monotonic() + 120
    while not workers.shared["ready"].all():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_workers_learn_though_one_is_killed(capsys):
    workers = crew(ActionByObservation, updates_per_record=10, total_steps=60_000)
    with workers:
        found = [workers.gather()]
        wait_for_both(workers)
        victim = multiprocessing.active_children()[0]
        os.kill(victim.pid, signal.SIGKILL)
        while found[-1].metrics["workers_replaced"] == 0:
            found.append(workers.gather())
        wait_for_both(workers)
        while (more := workers.gather()) is not None:
            found.append(more)
        assert not multiprocessing.active_children()
    assert f"(process {victim.pid}) was lost: killed by SIGKILL; a new one takes its place" in (
        capsys.readouterr().err
    )
    assert found[-1].metrics["workers_replaced"] == 1
    assert max(part.metrics["staleness"] for part in found) > 0
    # Each worker looks at the budget before it starts an update; one was lost, perhaps while it reported.
    decisions = sum(part.decisions for part in found)
    assert 60_000 <= decisions <= 60_000 + 3 * 128
    assert abs(sum(len(part.episodes["r"]) for part in found) - decisions) <= 128
    x = np.array([[-1.0], [1.0]], np.float32)
    policy, obs = workers.model.policy(), {"x": x, "action_mask": np.ones((2, 2), bool)}
    np.testing.assert_array_equal(policy.predict(obs), [0, 1])
    np.testing.assert_allclose(policy.forward(obs)[1], 1.0, atol=0.05)


class Starting:
    """Processes that start without end, until they are killed."""

    def __init__(self):
        self.left = {0, 1}

    @property
    def running(self):
        return bool(self.left)

    def kill_one(self, index):
        self.left.discard(index)

    def wait(self, seconds):
        assert not self.left, "it waits for workers that are still starting"

    deaths = list


def test_a_spent_budget_waits_for_no_worker_that_is_starting():
    workers = crew(total_steps=100)
    workers._processes = Starting()
    workers.shared["decisions"][1] = 128
    assert workers.gather() is None
    assert workers.shared["stop"]


def test_no_more_workers_start_than_there_are_updates(monkeypatch):
    started, said = [], []
    monkeypatch.setattr(Crew, "_start", lambda self, index: started.append(index))
    for steps, wanted in ((100, [0]), (129, [0, 1]), (10**6, [0, 1])):
        workers, started[:] = crew(total_steps=steps), []
        workers.run.say = said.append
        with workers:
            assert started == wanted
            assert not workers._processes.at_work(1)
    assert said == ["the budget is 1 update: as many workers start, and no more"]


@pytest.mark.slow
def test_a_frozen_worker_is_replaced(capsys):
    workers = crew(total_steps=10**9, updates_per_record=1, worker_timeout=20.0)
    with workers:
        workers.gather()
        wait_for_both(workers)
        victim = workers._processes._processes[1].pid
        os.kill(victim, signal.SIGSTOP)
        deadline = time.monotonic() + 120
        while (found := workers.gather()).metrics["workers_replaced"] == 0:
            assert time.monotonic() < deadline
        assert found.metrics["workers"] == 1  # the new one is still starting
    assert f"(process {victim}) was lost: no sign of life for 20 s; a new one" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "error"), [("NumericsError", NumericsError), ("UserError", UserError)])
def test_what_a_worker_finds_wrong_is_raised_here(kind, error):
    workers = crew()
    write_text(workers.shared["failure"][1], kind)
    write_text(workers.shared["message"][1], "the gradient holds nan")
    with pytest.raises(error, match="the gradient holds nan"):
        workers._lost(Death(1, 123, 1))


def test_a_worker_that_cannot_start_ends_the_run_and_says_why():
    with pytest.raises(RuntimeError, match='if __name__ == "__main__"'):
        crew()._lost(Death(0, 123, 1))


def test_too_many_deaths_end_the_run():
    workers = crew(max_restarts=0)
    with pytest.raises(RuntimeError, match="killed by SIGKILL, and max_restarts 0 are used up"):
        workers._lost(Death(0, 123, -signal.SIGKILL))


def test_each_start_of_each_worker_draws_its_own_jobs():
    workers = crew()
    seeds = set()
    for starts in range(3):
        workers.shared["starts"][:] = starts
        seeds |= {workers._arguments(index)[2] for index in range(2)}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_a_wrapped_environment_is_refused_by_several_workers():
    settings = small_settings("a3c", num_workers=2)

    class Passing(VectorWrapper):
        """Passes attributes through, as many wrappers do: `factory` would leave the wrapper out."""

        def __getattr__(self, name):
            return getattr(self.env, name)

    wrapped = Passing(MaskedBestAction(settings.num_envs))
    assert wrapped.factory() is MaskedBestAction
    with pytest.raises(UserError, match="Passing has no method factory"):
        next(train(wrapped, settings, Run(Budget(1_000), 0)))


def test_an_environment_made_anew_is_like_the_first():
    from schedrl.envs.deeprm.vector import DeepRMVectorEnv

    env = DeepRMVectorEnv(num_envs=3, seed=5, family="validation", load=1.3, copy=False)
    twin = env.factory()(num_envs=3, seed=5)
    seen, again = env.reset()[0], twin.reset()[0]
    assert all((seen[name] == again[name]).all() for name in seen)
    assert twin.settings == env.settings


# -- settings ------------------------------------------------------------------------------------------------


def test_refusals():
    for changes, message in (
        ({"num_workers": 0}, "num_workers is 0"),
        ({"updates_per_record": 0}, "updates_per_record is 0"),
        ({"max_restarts": -1}, "max_restarts is -1"),
        ({"optimiser": "sgd"}, "optimiser"),
    ):
        with pytest.raises(UserError, match=message):
            small_settings("a3c", **changes)


def test_the_launcher_says_how_many_workers_and_why():
    from schedrl.launch.plan import read_plan

    alone, two = (read_plan(["--algo", "a3c", "--num_workers", str(n)]) for n in (1, 2))
    assert any(note.startswith("num_workers 1: this process alone, so that") for note in alone.notes)
    assert any(note.startswith("num_workers 2: as many processes") for note in two.notes)
    assert two.algorithm.num_workers == two.launch.num_workers == 2
    crowd = read_plan(["--algo", "a3c", "--num_workers", "1000"])
    assert any("Warning: " in note and "processes share a core" in note for note in crowd.notes)
    assert SimpleNamespace(**two.described["algorithm"]).num_workers == 2
