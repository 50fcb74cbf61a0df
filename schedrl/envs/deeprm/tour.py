"""One episode told decision by decision, for `python environment.py`."""

from collections.abc import Iterator

import numpy as np

from .environment import DeepRMEnv
from .render import symbol
from .settings import DeepRMSettings


def annotated_episode(settings: DeepRMSettings, seed: int) -> Iterator[str]:
    """Yield the lines of an episode in which the shortest job that fits is started."""
    env = DeepRMEnv(settings, representation="state", image_colours=False, render_mode="ansi")
    obs, _ = env.reset(seed=seed)
    yield settings.summary()
    yield "Rows of the machine are steps from now, a column is a unit, a letter the job that holds it.\n"
    total, decision, ended = 0.0, 0, False
    yield env.render()
    while not ended:
        action, why = _shortest(obs, env)
        decision += 1
        obs, reward, terminated, truncated, info = env.step(action)
        total, ended = total + reward, terminated or truncated
        yield f"\ndecision {decision}: action {action}, {why}"
        if action == settings.num_job_slots:
            parts = ", ".join(f"{name} {value:.2f}" for name, value in info["reward_terms"].items() if value)
            yield f"reward {reward:.2f}" + (f" ({parts})" if parts else "") + "\n"
            yield env.render()
    table = env.jobs()
    slowdown = (table["finish_time"] - table["arrival_time"]) / table["duration"]
    how = "over" if terminated else "cut off"
    yield f"\nThe episode is {how} after {decision} decisions; its return is {total:.2f}."
    if terminated and len(slowdown) and (table["finish_time"] >= 0).all():
        yield f"Minus the return is the sum of the slowdowns: {slowdown.sum():.2f} of {len(slowdown)} jobs."


def _shortest(obs: dict[str, np.ndarray], env: DeepRMEnv) -> tuple[int, str]:
    """Choose the shortest job that fits from now on, and say so."""
    fits = np.flatnonzero(obs["startable"])
    if not fits.size:
        why = "no waiting job fits" if obs["duration"].any() else "no job waits"
        return len(obs["duration"]), f"the no-op: {why}, a step passes"
    slot = int(fits[np.argmin(obs["duration"][fits])])
    job = env.slot_jobs()[slot]
    end = int(obs["scalars"][0]) + int(obs["duration"][slot])
    return (
        slot,
        f"slot {slot}: start job {symbol(job)}, the shortest of {fits.size} that fit; it ends at {end}",
    )
