"""Each setting of each algorithm changes the weights of a short run, or the test that shows it is named."""

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from small_runs import small_settings

from schedrl import registry
from schedrl.envs.action_probes import ACTION_PROBES
from schedrl.envs.probes import PROBES
from schedrl.learning import settings as learning
from schedrl.learning.budget import Budget
from schedrl.learning.run_folder import Run

TESTS = Path(__file__).parents[1]

SHARED = {
    learning.LearningSettings: {
        "num_envs": 16, "gamma": 0.5, "learning_rate": 1e-3, "learning_rate_schedule": "constant",
        "max_grad_norm": 0.01, "reward_scale": 0.1, "normalise_observations": True, "hidden": (16,),
        "layer_norm": True, "total_steps": 2_600, "xla": True, "schedule_steps": 1_000,
        "schedule_episodes": 60, "schedule_share": 0.3,
        "precision": "mixed_bfloat16",
    },
    learning.PolicyGradientSettings: {
        "entropy_coef": 0.1, "entropy_coef_final": 0.1, "entropy_schedule": "constant",
        "normalise_advantages": False, "advantage_clip": 0.1,
    },
    learning.ActorCriticSettings: {
        "num_steps": 4, "gae_lambda": 0.2, "value_coef": 0.1, "skip_forced": False, "dropout": 0.5,
        "num_quantiles": 5,
    },
    learning.OneStepSettings: {"critic_learning_rate": 1e-3, "optimiser": "rmsprop"},
}  # fmt: skip
"""Class of settings -> setting -> a value that every algorithm with that class must answer to."""
OWN = {
    "a2c": {},
    "a3c": {},
    "ppo": {
        "num_epochs": 2, "batch_size": 64, "clip_epsilon": 0.01, "value_clip": 0.01, "target_kl": 1e-6,
    },
    "pg": {"optimiser": "rmsprop", "episodes_per_sequence": 16, "batch_size": 16},
    "ddpg": {
        "entropy_coef": 0.3, "entropy_coef_final": 0.1, "entropy_schedule": "constant",
        "learning_starts": 1_000, "critic_learning_rate": 1e-3, "critic_hidden": (16,), "num_steps": 4,
        "gradient_steps": 2, "batch_size": 32, "replay_size": 600, "n_step": 1, "tau": 0.5,
        "num_critics": 2, "temperature": 0.5, "gumbel_draws": 1, "epsilon": 0.5, "epsilon_final": 0.5,
        "priority_alpha": 0.6, "priority_beta": 0.9, "value_coef": 0.1, "noise": "ou", "noise_std": 0.5,
    },
}  # fmt: skip
"""What is an algorithm's alone. One that isn't listed (a new folder) is held to SHARED."""
NEEDS = {
    ("pg", "reward_scale"): {"normalise_advantages": False},
    ("ddpg", "priority_beta"): {"priority_alpha": 0.6},
    ("ddpg", "tau"): {"n_step": 1},
}
"""Other values under which a setting can matter at all."""
PROBE = {
    "gae_lambda": "delayed_reward",  # shows in episodes of several steps only
    "skip_forced": "masked_best_action",  # the only one with forced decisions
    "noise": "continuous_two_steps",
    "noise_std": "continuous_two_steps",
}
PROBE_OF = {"ddpg": "delayed_reward"}
ELSEWHERE = {
    "num_episodes": "learning/test_small_parts.py::test_budget_counts_decisions_or_episodes",
    "prior": "learning/test_pair_scorer.py::test_with_a_prior_an_untrained_policy_plays_like_backfilling",
    "network": "learning/test_networks.py::test_numpy_equals_tensorflow",
    "use_tf_function": "algorithms/test_all_algorithms.py::test_eager_equals_compiled",
    "validate_every": "algorithms/test_selection.py::test_the_launcher_looks_where_it_should",
    "validation_sequences": "algorithms/test_selection.py::test_other_sequences_give_other_means",
    "check_numerics": "algorithms/test_all_algorithms.py::test_a_nan_stops_the_run_and_is_named",
    "pretrain": "learning/test_pretraining.py::test_it_plays_as_the_heuristic_does_on_other_jobs",
    "pretrain_episodes": "learning/test_pretraining.py::test_more_episodes_and_epochs_imitate_differently",
    "pretrain_epochs": "learning/test_pretraining.py::test_more_episodes_and_epochs_imitate_differently",
    "baseline": "algorithms/test_pg.py::test_advantages_by_hand",
    ("pg", "gamma"): "algorithms/test_pg.py::test_advantages_by_hand",
    "num_workers": "algorithms/test_a3c.py::test_two_workers_learn_though_one_is_killed",
    "updates_per_record": (
        "algorithms/test_a3c.py::test_a_record_holds_several_updates_and_the_budget_is_kept"
    ),
    "max_restarts": "algorithms/test_a3c.py::test_too_many_deaths_end_the_run",
    "worker_timeout": "algorithms/test_a3c.py::test_a_frozen_worker_is_replaced",
}
"""Setting, or (algorithm, setting) -> the test that shows what it does."""


def changes_of(algorithm: str) -> dict:
    cls = registry.get("algorithm_settings", algorithm)
    found = {}
    for base, changes in SHARED.items():
        found |= changes if issubclass(cls, base) else {}
    return {
        name: value
        for name, value in (found | OWN.get(algorithm, {})).items()
        if (algorithm, name) not in ELSEWHERE
    }


CASES = [(algorithm, name) for algorithm in registry.names("algorithm") for name in changes_of(algorithm)]


@cache
def weights(algorithm: str, probe: str, *changes: tuple) -> np.ndarray:
    """Return what a short run ends with; equal runs are made once."""
    settings = small_settings(algorithm, **{"total_steps": 2_000, **dict(changes)})
    run = Run(Budget.of(settings), 0, None, tensorboard=False)
    env = (PROBES | ACTION_PROBES)[probe](settings.num_envs)
    for _ in registry.get("algorithm", algorithm)(env, settings, run):
        pass
    return run.model.weights.numpy()


@pytest.mark.parametrize(("algorithm", "name"), CASES)
def test_it_changes_the_result(algorithm, name):
    probe = PROBE.get(name, PROBE_OF.get(algorithm, "truncated_or_terminated"))
    needs = NEEDS.get((algorithm, name), {})
    base = weights(algorithm, probe, *sorted(needs.items()))
    changed = weights(algorithm, probe, *sorted((needs | {name: changes_of(algorithm)[name]}).items()))
    assert changed.shape != base.shape or (changed != base).any()


@pytest.mark.parametrize("algorithm", OWN)
def test_no_setting_is_left_out(algorithm):
    settings = set(registry.get("algorithm_settings", algorithm).kinds())
    elsewhere = {name for name in settings if name in ELSEWHERE or (algorithm, name) in ELSEWHERE}
    assert settings - elsewhere == set(changes_of(algorithm))


@pytest.mark.parametrize("place", sorted(set(ELSEWHERE.values())))
def test_the_tests_named_are_there(place):
    file, _, name = place.partition("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
