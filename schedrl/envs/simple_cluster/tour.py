"""One episode told decision by decision, for `python environment.py --env simple_cluster`."""

from collections.abc import Iterator

import numpy as np

from .environment import SimpleClusterEnv
from .settings import SimpleClusterSettings


def annotated_episode(settings: SimpleClusterSettings, seed: int) -> Iterator[str]:
    """Yield the lines of an episode in which each job goes to the first machine that has room."""
    env = SimpleClusterEnv(settings, mask=True, render_mode="ansi")
    obs, _ = env.reset(seed=seed)
    yield env.settings.summary()
    yield "A bar is what is in use of a machine. Jobs wait in the order of the queue, the head first.\n"
    yield env.render()
    total, decision, ended = 0.0, 0, False
    wait = env.num_choices - 1
    machines = obs["cluster"].shape[0] if "cluster" in obs else obs["free"].shape[0]
    while not ended:
        choice = int(obs["action_mask"][: env.num_choices].argmax())
        decision += 1
        if choice == wait:
            why = "wait for the next event"
        else:
            why = (
                f"place {choice // machines} of the queue to machine {choice % machines}, the first with room"
            )
        elastic = settings.action == "elastic"
        action = (choice, 0, np.ones(2)) if elastic else choice
        obs, reward, terminated, truncated, info = env.step(action)
        total, ended = total + reward, terminated or truncated
        parts = ", ".join(f"{name} {value:.3f}" for name, value in info["reward_terms"].items() if value)
        yield f"\ndecision {decision}: action {choice}, {why}"
        yield f"reward {reward:.3f}" + (f" ({parts})" if parts else "") + "\n"
        yield env.render()
    table = env.jobs()
    done = table["status"] == "finished"
    wait_times = (table["start_time"] - table["arrival_time"])[done]
    how = "over" if terminated else "cut off"
    yield f"\nThe episode is {how} after {decision} decisions; its return is {total:.3f}."
    yield f"{done.sum()} jobs finished; they waited {wait_times.mean():.1f} on average." if done.any() else ""
