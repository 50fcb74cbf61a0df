"""Replay of what the original program did, through any simulator.

A simulator is adapted by an object with `reset(durations, demands)`, `step(action) -> (reward, terminated,
truncated)`, `job_table()` -> rows [arrival, start, finish, duration] of the recorded jobs in the order of
their legacy number, `compact()` and `image()`; see `ReferenceAdapter`. Physics come from `original_physics`.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from schedrl.sim.deeprm.reference import ReferencePhysics, ReferenceSimulator

DATA = Path(__file__).parent / "data"
QUIRKS: dict[str, Any] = {
    "allow_reservation": True,
    "lingering": True,
    "off_by_one": True,
    "skip_first": True,
    "silent_drop": True,
}
Episode = dict[str, Any]


class Adapter(Protocol):
    """What a replay asks of a simulator."""

    def reset(self, durations: np.ndarray, demands: np.ndarray) -> None: ...  # noqa: D102
    def step(self, action: int) -> tuple[float, bool, bool]: ...  # noqa: D102
    def job_table(self) -> list[list[int]]: ...  # noqa: D102
    def compact(self) -> np.ndarray: ...  # noqa: D102
    def image(self) -> np.ndarray: ...  # noqa: D102


class ReferenceAdapter:
    """The plain-Python simulator behind the replay's interface."""

    def __init__(self, physics: ReferencePhysics) -> None:
        """Keep the physics; jobs come with `reset`."""
        self.physics = physics
        self.sim: ReferenceSimulator

    def reset(self, durations: np.ndarray, demands: np.ndarray) -> None:
        """Start on these jobs."""
        self.sim = ReferenceSimulator(self.physics, durations, demands)

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Take one decision."""
        return self.sim.step(action)

    def job_table(self) -> list[list[int]]:
        """List the recorded jobs."""
        columns = ("arrival_time", "start_time", "finish_time", "duration")
        return [[job[name] for name in columns] for job in self.sim.jobs() if job["legacy_id"] >= 0]

    def compact(self) -> np.ndarray:
        """Return the compact vector."""
        return self.sim.compact()

    def image(self) -> np.ndarray:
        """Return the picture."""
        return self.sim.image()


def load(name: str, folder: Path = DATA) -> dict[str, Any]:
    """Read `name`.json.gz, or `name`.json from another folder."""
    if folder == DATA:
        return json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))
    return json.loads((folder / f"{name}.json").read_text())


def original_physics(ending: str, config: dict[str, Any]) -> ReferencePhysics:
    """Translate a configuration of the original, all its quirks on; what is missing has its default."""
    return ReferencePhysics(
        num_slots=config["num_nw"],
        horizon=config.get("time_horizon", 20),
        capacity=(config.get("res_slot", 10),) * 2,
        backlog_size=config.get("backlog_size", 60),
        episode_max_length=config.get("episode_max_length", 20000),
        termination=ending,
        **QUIRKS,
    )


def golden_episodes(data: dict[str, Any]) -> Iterator[tuple[str, Episode]]:
    """Yield (name, episode) of a golden file, each episode with its `ending`, `seq_len` and `seq_size`."""
    for rate in data["rates"]:
        for run, episodes in rate["runs"].items():
            ending, policy = run.split("/")
            for number, episode in enumerate(episodes):
                jobs = {"seq_len": rate["seq_len"][number], "seq_size": rate["seq_size"][number]}
                name = f"rate {rate['new_job_rate']} {run} {number}"
                yield name, episode | jobs | {"ending": ending, "policy": policy}


def replay_episode(
    sim: Adapter, episode: Episode, name: str = "", choose: Callable[[], int] | None = None
) -> None:
    """Assert that a simulator with the original's physics repeats an episode to its end.

    Args:
        sim: adapter, made with the physics of `episode["ending"]`.
        episode: from `golden_episodes`.
        name: shown in failures.
        choose: if given, the policy, which must choose the recorded actions.
    """
    sim.reset(np.array(episode["seq_len"]), np.array(episode["seq_size"]))
    last = len(episode["actions"]) - 1
    for number, (action, reward) in enumerate(zip(episode["actions"], episode["rewards"], strict=True)):
        where = f"{name}, step {number}"
        if choose is not None:
            assert choose() == action, where
        got, terminated, truncated = sim.step(action)
        assert abs(got - reward) <= 1e-9, f"{where}: reward {got}, original {reward}"
        assert (terminated or truncated) == (number == last and episode["done"]), where
    assert [list(map(int, row)) for row in sim.job_table()] == episode["jobs"], name


def replay_observations(make: Callable[[ReferencePhysics], Adapter], case: dict[str, Any]) -> None:
    """Assert that the observations of a case appear after the same actions.

    Pictures are compared by occupancy, because the original's colours are random.
    """
    sim = make(original_physics("all_done", case))
    sim.reset(np.array(case["seq_len"]), np.array(case["seq_size"]))
    expected = {observation["step"]: observation for observation in case["observations"]}
    for number in range(max(expected) + 1):
        if number:
            sim.step(case["actions"][number - 1])
        if number not in expected:
            continue
        if case["repre"] == "compact":
            np.testing.assert_array_equal(sim.compact(), np.array(expected[number]["values"], np.float32))
        else:
            picture, golden = np.asarray(sim.image()), unpack(expected[number])
            np.testing.assert_array_equal(picture > 0, golden > 0)
            np.testing.assert_allclose(picture[:, -1], golden[:, -1], atol=1e-6)


def unpack(observation: dict[str, Any]) -> np.ndarray:
    """Draw a picture from the runs of its rows."""
    picture = np.zeros(observation["shape"])
    for row, runs in zip(picture, observation["rows_rle"], strict=True):
        for start, end, value in runs:
            row[start:end] = value
    return picture


def micro_sequence(scenario: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return durations [T] and demands [T, 2] of a micro scenario."""
    durations = np.zeros(scenario["simu_len"], int)
    demands = np.zeros((scenario["simu_len"], 2), int)
    for step, (duration, *demand) in scenario["jobs"].items():
        durations[int(step)], demands[int(step)] = duration, demand
    return durations, demands


def replay_micro(make: Callable[[ReferencePhysics], Adapter], scenario: dict[str, Any]) -> Adapter:
    """Assert rewards, end, compact vectors and job table of a micro scenario; return the simulator."""
    sim = make(original_physics(scenario["end"], scenario))
    sim.reset(*micro_sequence(scenario))
    for number, (action, row) in enumerate(zip(scenario["actions"], scenario["trace"], strict=True)):
        where = f"{scenario['name']}, step {number}"
        reward, terminated, truncated = sim.step(action)
        assert abs(reward - row["reward"]) <= 1e-9, where
        assert (terminated or truncated) == row["done"], where
        np.testing.assert_array_equal(sim.compact(), np.array(row["compact"], np.float32), err_msg=where)
    assert [list(map(int, row)) for row in sim.job_table()] == scenario["records"], scenario["name"]
    return sim
