"""One update of each algorithm on a share of the same data: run by two workers, and by one process on all.

`python shared_updates.py INDEX FILE` is a worker (its cluster in TF_CONFIG) that writes what it got to FILE.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

from a2c.config import A2CSettings
from ddpg.config import DDPGSettings
from pg.config import PGSettings
from ppo.config import PPOSettings
from schedrl.envs.probes import PROBES
from schedrl.learning import optimisers
from schedrl.learning.batches import minibatches, scaled_advantages
from schedrl.learning.replicas import ALONE, Replicas

ROWS, STEPS = 24, 3
CLIP = 0.05
"""Small enough to matter: clipped shares would not average to the clipped whole."""
COMMON = {"network": "mlp", "hidden": (16,), "num_envs": 8, "normalise_observations": True}


def env():
    return PROBES["action_by_observation"](8)


def data(rows: slice) -> dict:
    """Return columns of the same random decisions, cut to `rows`."""
    rng = np.random.default_rng(0)
    total, space = 2 * ROWS, env().single_observation_space
    choices = space["action_mask"].shape[0]
    # The halves differ much: an average that isn't one would show.
    scale = np.repeat([1.0, 3.0], ROWS).astype(np.float32)
    obs = {"x": (rng.normal(size=(total, *space["x"].shape)) * scale[:, None]).astype(np.float32)}
    obs["action_mask"] = np.ones((total, choices), bool)
    batch = {"obs": obs, "action": rng.integers(0, choices, total).astype(np.int32)}
    for name in ("log_prob", "value", "advantage", "target", "reward"):
        batch[name] = (rng.normal(size=total) * scale).astype(np.float32)
    batch["log_prob"] = -np.abs(batch["log_prob"]) / 3
    batch["advantage"] = np.clip(batch["advantage"], -1, 1)
    return cut(batch, rows)


def cut(batch: dict, rows) -> dict:
    return {k: cut(v, rows) if isinstance(v, dict) else v[rows] for k, v in batch.items()}


def gradient_step(module, settings, replicas, rows):
    from schedrl.learning.actor_critic import actor_critic_for

    model = actor_critic_for(env(), settings, 3, replicas)
    batch = data(rows)
    model.update_normaliser(batch["obs"])
    found = module.make_step(model, settings)(batch, learning_rate=0.1, entropy_coef=0.01)
    return model, found


def a2c(replicas, rows, clip):
    from a2c import model

    return gradient_step(model, A2CSettings(**COMMON, max_grad_norm=clip), replicas, rows)


def pg(replicas, rows, clip):
    from pg import model

    return gradient_step(model, PGSettings(**COMMON, max_grad_norm=clip), replicas, rows)


def ppo(replicas, rows, clip, target_kl=None):
    from ppo.model import PPOLearner
    from schedrl.learning.actor_critic import actor_critic_for

    settings = PPOSettings(**COMMON, num_steps=64, max_grad_norm=clip, target_kl=target_kl)
    model = actor_critic_for(env(), settings, 3, replicas)
    batch = {name: column for name, column in data(rows).items() if name != "reward"}
    model.update_normaliser(batch["obs"])
    # Each step takes a third of every half, so two halves make the minibatch that the whole makes.
    own = np.arange(ROWS, dtype=np.int32).reshape(STEPS, -1)
    halves = len(batch["action"]) // ROWS
    minibatch = np.concatenate([own + half * ROWS for half in range(halves)], axis=1)
    return model, PPOLearner(model, settings).update(batch, minibatch, 0.1, 0.01)


def ddpg(replicas, rows, clip):
    from ddpg.model import Agent
    from ddpg.update import Learner
    from schedrl.learning.action_spec import ActionSpec

    settings = DDPGSettings(**COMMON, max_grad_norm=clip, num_critics=2)
    space = env().single_observation_space
    spec = ActionSpec((space["action_mask"].shape[0],))
    agent = Agent(space, spec, settings, 3, "probe", replicas=replicas)
    learner = Learner(agent)
    # The noise of a row must not depend on where the row stands.
    learner.straight_through = lambda logits, noise: type(learner).straight_through(
        learner, logits, 0.0 * noise
    )
    halves = range(len(data(rows)["action"]) // ROWS)
    order = np.concatenate([np.arange(ROWS).reshape(STEPS, -1) + half * ROWS for half in halves], axis=1)
    batch = cut(data(rows), order.ravel())
    agent.update_normaliser(batch["obs"])
    arrays = {name: batch[name].reshape(order.shape) for name in ("action", "reward")}
    arrays |= {name: np.full(order.shape, value, np.float32) for name, value in FACTORS.items()}
    arrays |= {"obs": batch["obs"], "next_obs": batch["obs"]}
    return agent, learner.update(arrays, 0.1, 0.1, 0.01)[0]


FACTORS = {"discount": 0.9, "importance": 0.7}
UPDATES = {"pg": pg, "a2c": a2c, "ppo": ppo, "ddpg": ddpg}


def sgd(weights, gradient, m, v, step, rate):
    return weights - rate * gradient, m, v


def results(replicas: Replicas, rows: slice) -> dict[str, np.ndarray]:
    """Return by name what updates on `rows` leave behind."""
    found = {}
    kept, optimisers.OPTIMISERS["adam"], optimisers.adam = optimisers.adam, sgd, sgd
    for name, update in UPDATES.items():
        model, statistics = update(replicas, rows, CLIP)
        found[name] = model.weights.numpy()
        found[f"{name}/statistics"] = np.array(list(statistics.values()))
    optimisers.OPTIMISERS["adam"] = optimisers.adam = kept
    model, statistics = ppo(replicas, rows, 1e9, target_kl=LIMIT)
    found["kl_stop"] = np.array([statistics["gradient_steps"], statistics["approx_kl"]])
    found["kl_weights"] = model.weights.numpy()
    return found


LIMIT = 0.1
"""Of the KL: the halves by themselves stop after 2 and 1 steps (asserted by the test), the whole after 2."""


def uneven(replicas: Replicas, rows: slice) -> dict[str, np.ndarray]:
    """Return what shares of different sizes give, one of them none at all."""
    settings = A2CSettings(**COMMON)
    columns = data(rows)
    advantage = scaled_advantages(columns["advantage"], settings, replicas)
    parts = list(minibatches(columns, 10, np.random.default_rng(0), replicas))
    episodes = {"r": columns["reward"].astype(float)} if len(columns["reward"]) else {}
    joined = replicas.joined(len(columns["reward"]), {"x": float(replicas.index)}, episodes)
    model, _ = a2c(replicas, rows, 1e9)
    return {
        "advantage": advantage,
        "parts": np.array([len(parts)]),
        "weights": model.weights.numpy(),
        "mean": model.normaliser.mean["x"],
        "var": model.normaliser.var["x"],
        "decisions": np.array([joined[0]]),
        "metric": np.array([joined[1]["x"]]),
        "returns": joined[2].get("r", np.zeros(0)),
        "any": np.array([replicas.any(replicas.index == 1), replicas.any(False)]),
    }


UNEVEN = [(slice(0, 31), slice(31, 48)), (slice(0, 48), slice(48, 48))]


def alike(replicas: Replicas) -> np.ndarray:
    """Return the weights that a replica starts with; each drew others."""
    from schedrl.learning.actor_critic import actor_critic_for

    model = actor_critic_for(env(), A2CSettings(**COMMON), 7 + replicas.index, replicas)
    replicas.start_alike(model)
    return model.weights.numpy()


def everything(replicas: Replicas) -> dict[str, np.ndarray]:
    index = replicas.index
    found = results(replicas, slice(index * ROWS, (index + 1) * ROWS))
    for i, shares in enumerate(UNEVEN):
        found |= {f"uneven{i}/{k}": v for k, v in uneven(replicas, shares[index]).items()}
    return found | {"alike": alike(replicas)}


if __name__ == "__main__":
    from schedrl.learning.replicas import MirroredReplicas
    from schedrl.learning.tf_setup import tensorflow

    strategy = tensorflow(seed=0).distribute.MultiWorkerMirroredStrategy()
    np.savez(Path(sys.argv[1]), **everything(MirroredReplicas(strategy)))
    os._exit(0)


def run_two(folder: Path, ports: list[int], root: Path) -> list[dict[str, np.ndarray]]:
    """Run two workers; return what each wrote."""
    import subprocess

    workers = [f"127.0.0.1:{port}" for port in ports]
    children = []
    for index in range(2):
        config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        path = os.pathsep.join([str(root), str(Path(__file__).parent)])
        environ = os.environ | {"TF_CONFIG": json.dumps(config), "PYTHONPATH": path}
        command = [sys.executable, __file__, str(folder / f"{index}.npz")]
        children.append(subprocess.Popen(command, env=environ, cwd=root, stderr=subprocess.PIPE, text=True))
    try:
        for child in children:
            _, errors = child.communicate(timeout=600)
            assert child.returncode == 0, errors
    finally:
        for child in children:
            child.kill()
            child.wait()
    return [dict(np.load(folder / f"{index}.npz")) for index in range(2)]


ALL = slice(0, 2 * ROWS)
__all__ = ["ALL", "ALONE", "UNEVEN", "results", "run_two", "uneven"]
