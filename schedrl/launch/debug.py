"""`--mode debug`: one environment, every step printed, every number checked; to learn from and to find bugs.

The algorithm runs as always, only tiny and eagerly (`plan.DEBUG`; a breakpoint inside the loss works) and
sees the environment through `Traced`, which prints what passes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorWrapper

from schedrl import registry
from schedrl.launch.local import announce, open_run, undone_if_refused
from schedrl.launch.plan import Plan
from schedrl.launch.progress import Progress
from schedrl.learning.budget import Budget
from schedrl.learning.rollout import MASK, NumericsError, require_finite
from schedrl.learning.run_folder import Run
from schedrl.settings import error_line


def run(plan: Plan) -> int:
    """Train a little, printing everything; return the exit code (1 where a number went wrong)."""
    budget = Budget.of(plan.algorithm)
    progress = Progress(budget)
    announce(plan, progress)
    progress.say("loading TensorFlow and the simulator; everything runs eagerly, with numeric checks")
    try:
        with undone_if_refused(plan.folder):
            _train(plan, open_run(plan, budget, progress.say))
    except NumericsError as error:
        print(f"error: not a number: {error_line(error)}", file=sys.stderr)
        return 1
    progress.say(f"done; now train in earnest: python launcher.py --algo {plan.launch.algo}")
    return 0


def _train(plan: Plan, trained: Run) -> None:
    launch = plan.launch
    env = registry.get("vector_environment", launch.env)(
        plan.environment, plan.algorithm.num_envs, seed=launch.seed
    )
    traced = Traced(env, trained, launch.render)
    algorithm = registry.get("algorithm", launch.algo)
    for number, record in enumerate(algorithm(traced, plan.algorithm, trained), 1):
        print(f"\nupdate {number} learned from these steps:")
        print("  " + ", ".join(f"{name} {value:.4g}" for name, value in record.items()) + "\n", flush=True)


class Traced(VectorWrapper):
    """Prints what the agent sees, may do, does and gets, at every step of the first environment.

    Args:
        env: the batched environment.
        run: whose `model` is asked for its value and its preferences.
        render: print a picture before each step.
    """

    def __init__(self, env: Any, run: Any, render: bool) -> None:
        super().__init__(env)
        self._run, self._picture = run, render
        self._steps, self._seen = 0, {}  # type: ignore[var-annotated]

    def reset(self, **options: Any) -> tuple[dict, dict]:
        """Reset and remember what is seen."""
        self._seen, infos = self.env.reset(**options)
        return self._seen, infos

    def step(self, actions: np.ndarray) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Step, and print it."""
        self._steps += 1
        print(f"step {self._steps}")
        if self._picture:
            print(self.env.render()[0])
        for line in self._before(int(actions[0])):
            print(line)
        self._seen, rewards, terminated, truncated, infos = self.env.step(actions)
        print(f"  gets    {_reward(rewards[0], infos.get('reward_terms', {}))}")
        if terminated[0] or truncated[0]:
            ended = {name: float(values[0]) for name, values in infos.get("episode", {}).items()}
            facts = ", ".join(f"{name} {value:.2f}" for name, value in ended.items())
            print(f"  episode {'terminated' if terminated[0] else 'truncated'}: {facts}")
        sys.stdout.flush()
        return self._seen, rewards, terminated, truncated, infos

    def _before(self, action: int) -> Iterator[str]:
        """Yield the lines on what is seen, what is legal, what is chosen and why."""
        for i, (name, leaf) in enumerate((k, v[0]) for k, v in self._seen.items() if k != MASK):
            require_finite(f"the observation's {name}", leaf)
            yield f"  {'sees' if i == 0 else '    '}    {name} {_summary(leaf)}"
        mask = self._seen[MASK][0]
        noop = len(mask) - 1
        yield "  may     " + ", ".join(_action(int(a), noop) for a in np.flatnonzero(mask))
        logits, values = self._run.model.policy().forward(self._seen)
        require_finite("the policy's logits", logits)
        require_finite("the value", values)
        chances = np.exp(logits[0] - logits[0].max())
        chances /= chances.sum()
        best = int(chances.argmax())
        yield (
            f"  does    {_action(action, noop)}, sampled with chance {chances[action]:.2f}; greedy is "
            f"{_action(best, noop)} at {chances[best]:.2f}; value {values[0]:.3f}"
        )


def _summary(leaf: np.ndarray) -> str:
    numbers = np.asarray(leaf, float)
    text = f"{list(leaf.shape)} from {numbers.min():.2f} to {numbers.max():.2f}, mean {numbers.mean():.3f}"
    if leaf.ndim == 2:
        text += f", {int(numbers.any(axis=1).sum())} of {len(leaf)} rows in use"
    return text


def _action(action: int, noop: int) -> str:
    return "no-op" if action == noop else f"slot {action}"


def _reward(reward: float, terms: Mapping[str, np.ndarray]) -> str:
    # + 0.0: a reward of nothing should not read -0.000.
    return f"{reward + 0.0:.3f}" + "".join(f", {name} {v[0] + 0.0:.3f}" for name, v in terms.items())
