"""Random settings of both environments: what is taken can be played, what isn't is refused in one line."""

import random

import numpy as np
import pytest

import environment
from schedrl import registry
from schedrl.launch.able import refuse_teacher
from schedrl.learning.action_spec import ActionSpec
from schedrl.settings import UserError

CHOICES = {
    "deeprm": {
        "num_job_slots": (1, 3, 10), "time_horizon": (5, 20), "backlog_size": (0, 1, 60),
        "sequence_length": (1, 8),
        "allow_reservation": (True, False), "termination": ("all_done", "no_new_job", "continuing"),
        "idle_limit": (0, 3, None), "mask": ("fits_now", "physics"), "arrival_rate": (0.1, 0.7, 1.0),
        "representation": ("slots", "state", "compact", "image"), "capacity": (1, 10, (4, 7)),
        "num_resources": (1, 2, 3), "max_job_duration": (1, 5, 15), "max_job_demand": (1, 4, 10),
        "delay_penalty": (-1.0, -1e-3), "hold_penalty": (-1.0, 0.0), "drop_penalty": (-1.0, 0.0),
        "quirks": ("none", "all"), "workload": ("bursty", "poisson"), "load": (0.3, 1.3),
        "kernel": ("auto", "counts"), "episode_max_length": (5, 200),
    },
    "simple_cluster": {
        "num_servers": (1, 3), "server": ((8, 32, 2), (1, 1, 0)),
        "workload": ("poisson", "bursty", "diurnal"),
        "load": (0.1, 0.9, 3.0, None), "num_jobs": (1, 6), "num_job_slots": (1, 5),
        "wait_limit": (0, 50, None),
        "queue_order": ("arrival", "sjf", "priority"), "action": ("machine", "job_machine"),
        "mask": (True, False), "allow_reject": (True, False), "wait_when_idle": (True, False),
        "decide": ("when_possible", "every_event"),
        "termination": ("all_done", "continuing"), "episode_max_decisions": (3, None),
        "reward": ("slowdown", "batch", "balanced", "operations", "makespan=-1"),
        "slowdown_floor": (1e-6, 10.0),
        "representation": ("slots", "state"), "train_loads": ((), (0.5, 1.0)), "train_servers": ((), (1, 2)),
        "privileged": (True, False), "history_time": (1e-3, 300.0),
    },
}  # fmt: skip
"""Environment -> setting -> values that are each right by themselves."""
MOST_STEPS = 12


def play(name, changes, seed):
    """Make the environment in every way there is and play a few decisions of one."""
    settings = registry.get("environment_settings", name).from_dict(changes)
    assert type(settings).from_dict(settings.to_dict()) == settings
    assert settings.summary().isprintable()
    for heuristic in ("sjf", "defer", "random"):
        algorithm = registry.get("algorithm_settings", "ppo")(pretrain=heuristic)
        try:
            refuse_teacher(settings, algorithm)
        except UserError as error:
            assert "pretrain is" in str(error)  # noqa: PT017 (some may be imitated)
    env = environment.make_vec(name, 2, seed=seed, settings=settings)
    actions = ActionSpec.of(env.single_action_space)
    obs, _ = env.reset(seed=seed)
    for _ in range(MOST_STEPS):
        obs, rewards, *_ = env.step(actions.decode(actions.forced(obs)))
        assert np.isfinite(rewards).all()
        assert all(np.isfinite(leaf).all() for leaf in obs.values())
    env.close()


@pytest.mark.parametrize(("seed", "count"), [(25, 20), pytest.param(26, 200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CHOICES)
def test_random_settings_are_played_or_refused(name, seed, count):
    rng, known = random.Random(seed), registry.get("environment_settings", name).kinds()
    choices = {key: values for key, values in CHOICES[name].items() if key in known}
    assert len(choices) > 15
    played, refused = 0, []
    for number in range(count):
        names = rng.sample(sorted(choices), rng.randrange(1, 6))
        changes = {key: rng.choice(choices[key]) for key in names}
        try:
            play(name, changes, number)
            played += 1
        except UserError as error:
            refused.append(" ".join(str(error).split()))
    assert played > count // 4
    assert all(len(line) < 400 and line.isprintable() for line in refused)
