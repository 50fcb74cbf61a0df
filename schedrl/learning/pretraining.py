"""Supervised pre-training: imitate a heuristic before reinforcement learning begins.

The original DeepRM's `pg_su` (Mao et al., 2016, section 4.1), as an optional first stage of every algorithm:
the heuristic plays training sequences, the policy learns its choices by cross-entropy, and the weights with
the best accuracy on held-out episodes go on to learn. A critic learns the heuristic's returns at the same
time; one that knew nothing would soon undo the imitation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from schedrl.heuristics import Heuristic
from schedrl.heuristics.teaching import illegal, teacher_for
from schedrl.learning import distributions, losses
from schedrl.learning.actor_critic import MASK, ActorCritic
from schedrl.learning.checkpoint import atomic_write
from schedrl.learning.episodes import EpisodeCollector
from schedrl.learning.gradient_step import GradientStep
from schedrl.learning.replicas import ALONE
from schedrl.learning.returns import returns_to_go
from schedrl.learning.run_folder import Run
from schedrl.learning.settings import ActorCriticSettings, LearningSettings

BATCH = 512
LEARNING_RATE = 1e-3
VALIDATION_SHARE = 0.2
PATIENCE = 5
"""Epochs without a better validation accuracy after which imitating ends."""
COLUMNS = ("epoch", "train_loss", "train_accuracy", "validation_accuracy")
FILE = "pretraining.csv"
STREAM = 7
"""Spawn key of the imitation's own random stream."""


def pretrain(model: ActorCritic, env: VectorEnv, settings: LearningSettings, run: Run) -> None:
    """Imitate `settings.pretrain`, if it names a heuristic and the run starts afresh; tell `run` about it.

    Writes `pretraining.csv` into the run's folder. The environment must be reset afterwards. Of several
    replicas the chief imitates, and the others start with its weights (`Run.restore`).

    Raises:
        UserError: the environment shows heuristics nothing, or the heuristic breaks its rules of play.
    """
    if settings.pretrain is None or run.resume or run.replicas.index > 0:
        return
    teacher = teacher_for(settings.pretrain, getattr(env.unwrapped, "settings", None))
    seeds = np.random.SeedSequence(run.seed, spawn_key=(STREAM,))
    run.say(f"imitating {settings.pretrain}: playing {settings.pretrain_episodes} episodes")
    seed = int(seeds.generate_state(1)[0] % 2**31)
    train, validation = _demonstrations(teacher, env.unwrapped, settings, seed)
    model.normaliser.update(train["obs"])
    model.refresh()
    best, rows = _fit(model, settings, (train, validation), np.random.default_rng(seeds), run)
    run.say(f"imitates {settings.pretrain} in {best:.1%} of the held-out decisions")
    if run.folder is not None:
        with atomic_write(run.folder / FILE) as file:
            lines = [",".join(COLUMNS), *(",".join(format(v, ".6g") for v in row) for row in rows)]
            file.write(("\n".join(lines) + "\n").encode())


def _demonstrations(
    teacher: Heuristic, env: Any, settings: LearningSettings, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the teacher's decisions, of training and of held-out episodes."""
    # `env` is bare here: a wrapper that shows or counts what the agent does has no business with this.
    collector = EpisodeCollector(env, 1, seed)
    teacher.reseed(seed)

    def choose(seen: Mapping[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        state = env.observe_as(teacher.representation)
        actions = teacher.predict({name: leaf[rows] for name, leaf in state.items()})
        if not seen[MASK][np.arange(len(rows)), actions].all():
            raise illegal(teacher.name)
        return actions

    parts: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for first in range(0, settings.pretrain_episodes, env.num_envs):
        played = collector.collect(choose)
        sums = returns_to_go(played.rewards * settings.reward_scale, settings.gamma)
        numbers = first + played.envs
        held_out = numbers < settings.pretrain_episodes * VALIDATION_SHARE
        for kind in parts:
            rows = np.flatnonzero((held_out == kind) & (numbers < settings.pretrain_episodes))
            target = sums[played.steps[rows], played.envs[rows]].astype(np.float32)
            obs = {name: leaf[rows] for name, leaf in played.obs.items()}
            parts[kind].append({"obs": obs, "action": played.actions[rows], "target": target})
    return _joined(parts[False]), _joined(parts[True])


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    obs = {name: np.concatenate([part["obs"][name] for part in parts]) for name in parts[0]["obs"]}
    return {"obs": obs} | {
        name: np.concatenate([part[name] for part in parts]) for name in ("action", "target")
    }


def _fit(
    model: ActorCritic,
    settings: LearningSettings,
    data: tuple[dict[str, Any], dict[str, Any]],
    rng: np.random.Generator,
    run: Run,
) -> tuple[float, list[tuple[float, ...]]]:
    """Leave the weights of the best epoch in the model; return its validation accuracy and all rows."""
    train, validation = data
    critic = settings.value_coef if isinstance(settings, ActorCriticSettings) else 0.0

    def loss(weights: Any, batch: Mapping[str, Any], _: Any, seed: Any) -> tuple[Any, tuple[Any, ...]]:
        logits, predicted = model.outputs(weights, batch["obs"], seed)
        log_probs = distributions.log_probs(logits, batch["obs"][MASK])
        cross_entropy = losses.policy_gradient(log_probs, batch["action"], 1.0)
        return cross_entropy + critic * losses.value_loss(predicted, batch["target"]), (cross_entropy,)

    step = GradientStep(model, loss, ("cross_entropy",), ("target",), replicas=ALONE)
    best, kept = -1.0, model.weights.numpy()
    rows: list[tuple[float, ...]] = []
    for epoch in range(1, settings.pretrain_epochs + 1):
        order = rng.permutation(len(train["action"]))
        cross_entropies = [
            step(_rows(train, order[i : i + BATCH]), LEARNING_RATE)["cross_entropy"]
            for i in range(0, len(order), BATCH)
        ]
        model.refresh()
        found = _accuracy(model, validation)
        rows.append((epoch, float(np.mean(cross_entropies)), _accuracy(model, train), found))
        if found > best:
            best, kept, best_epoch = found, model.weights.numpy(), epoch
        elif epoch - best_epoch >= PATIENCE:
            break
        if run.stop_requested:  # saved as it is, and learned from on --resume
            break
    model.weights.assign(kept)
    model.refresh()
    return best, rows


def _rows(data: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    obs = {name: leaf[rows] for name, leaf in data["obs"].items()}
    return {"obs": obs, "action": data["action"][rows], "target": data["target"][rows]}


def _accuracy(model: ActorCritic, data: dict[str, Any]) -> float:
    return float(np.mean(model.policy().predict(data["obs"]) == data["action"]))
