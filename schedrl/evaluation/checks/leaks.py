"""Does an environment, or a policy in it, know what has not happened? Two worlds, one past, played alike.

Each relation of `worlds` is played by a random legal player whose draws depend on the number of the decision
alone, or by a policy. Up to the moment every number that is seen, every mask, every action, every reward term
and every time at which a decision is due must be equal, bit for bit, and the shapes of all spaces too. Behind
it something must differ, else the pair has shown nothing and doesn't count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any, NamedTuple

import numpy as np

from schedrl.envs.declared import REWARDS
from schedrl.evaluation.checks.worlds import RELATIONS, World
from schedrl.workload.types import Workload

Make = Callable[[Workload], Any]
"""From jobs to a single environment that plays them."""
MASK, SPACES, DUE, ACTION = "action_mask", "spaces", "due", "action"
"""Beside the leaves of an observation: shapes, times of decisions, and what is chosen."""
MOST_DECISIONS = 2_000


class Moment(NamedTuple):
    """What was given out at one time."""

    time: float
    seen: dict[str, np.ndarray]
    action: Any
    terms: np.ndarray
    """Of the rewards of the step that led here; empty at the start."""
    over: bool


class Difference(NamedTuple):
    """Where two worlds differ before the moment."""

    leaf: str
    column: int
    """Of its last axis; -1: not a matter of columns."""
    time: float


class Compared(NamedTuple):
    """What a pair of worlds has shown."""

    decisions: int
    """Compared, before the moment."""
    undeclared: tuple[Difference, ...]
    """Leaks: the first of each place."""
    declared: tuple[Difference, ...]
    effect: bool
    """Whether anything differed behind the moment (or before it)."""


def random_legal(env: Any, obs: dict[str, np.ndarray], number: int, seed: int) -> Any:
    """Choose a legal action at random; the draw depends on `seed` and the decision's number alone."""
    rng = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, number]))
    choices = getattr(env, "num_choices", len(obs[MASK]))
    legal = np.flatnonzero(obs[MASK][:choices])
    choice = int(legal[int(rng.random() * len(legal))])
    if choices == len(obs[MASK]):
        return choice
    devices = len(obs[MASK]) - choices  # elastic: a device and two shares beside
    return choice, int(rng.random() * devices), rng.random(2)


def played(env: Any, seed: int, policy: Any = None) -> list[Moment]:
    """Play one episode; return all that was given out."""
    obs, _ = env.reset(seed=0)
    found: list[Moment] = []
    terms, over = np.zeros(0), False
    while True:
        action = None
        if not over:
            number = len(found)
            action = random_legal(env, obs, number, seed) if policy is None else policy.predict(obs)
        seen = {name: np.array(leaf) for name, leaf in obs.items()}
        found.append(Moment(env.time, seen, action, terms, over))
        if over or len(found) > MOST_DECISIONS:
            return found
        obs, _, terminated, truncated, info = env.step(action)
        terms, over = np.array(list(info["reward_terms"].values())), terminated or truncated


def compared(
    make: Make, world: World, other: Workload, known: Set[str], seed: int, policy: Any = None
) -> Compared:
    """Play a world and another one, equal up to the moment, and compare them.

    Args:
        make: makes the environment.
        world: the one.
        other: the jobs of the other.
        known: kinds of declared knowledge that may show the difference.
        seed: of the random player.
        policy: plays instead (greedy), where one is to be tested.
    """
    ours, theirs = make(world.jobs), make(other)
    if found := _of_spaces(ours, theirs):
        return Compared(0, tuple(found), (), True)
    declares = [each for each in (*ours.declares, *theirs.declares) if each.what in known]
    goes_on = bool(other.arrival[-1] > world.moment)
    a, b = played(ours, seed, policy), played(theirs, seed, policy)
    decisions = 0
    undeclared: dict[tuple[str, int], Difference] = {}
    declared: dict[tuple[str, int], Difference] = {}
    for mine, yours in zip(a, b, strict=False):
        now = min(mine.time, yours.time)
        if now > world.moment or (not goes_on and _ends(b, decisions, mine)):
            break
        decisions += 1
        for leaf, column in _differences(mine, yours):
            expected = any(each.covers(leaf, column) for each in declares)
            (declared if expected else undeclared).setdefault((leaf, column), Difference(leaf, column, now))
        if undeclared or mine.time != yours.time or not _same(mine.action, yours.action):
            break  # from here on these are two different runs
    effect = bool(undeclared or declared) or not _alike(a, b)
    return Compared(decisions, tuple(undeclared.values()), tuple(declared.values()), effect)


def _ends(b: list[Moment], place: int, mine: Moment) -> bool:
    """Tell whether the world in which nothing more comes ends here, as it may, and the other goes on.

    An episode that is over when it begins says so after its first decision.
    """
    over = b[place].over or (place == 0 and len(b) == 2)
    return over and (not mine.over or mine.time != b[place].time)


def _of_spaces(ours: Any, theirs: Any) -> list[Difference]:
    spaces = ours.observation_space.spaces
    names = {**spaces, **theirs.observation_space.spaces}
    wrong = [name for name in names if spaces.get(name) != theirs.observation_space.spaces.get(name)]
    wrong += [ACTION] if ours.action_space != theirs.action_space else []
    return [Difference(f"{SPACES}: {name}", -1, 0.0) for name in wrong]


def _differences(mine: Moment, yours: Moment) -> Iterable[tuple[str, int]]:
    """Yield leaf and column of what differs; an action that follows from what differs is none of its own."""
    if mine.time != yours.time or mine.over != yours.over:
        yield DUE, -1
        return
    seen = False
    for leaf, values in mine.seen.items():
        differing = values != yours.seen[leaf]
        differing &= ~((values != values) & (yours.seen[leaf] != yours.seen[leaf]))  # NaN is NaN
        columns = np.flatnonzero(differing.reshape(-1, differing.shape[-1]).any(axis=0))
        seen |= bool(columns.size)
        yield from ((leaf, int(column)) for column in columns)
    if not seen and not mine.over and not _same(mine.action, yours.action):
        yield ACTION, -1
    if mine.terms.size == yours.terms.size:
        yield from ((REWARDS, int(term)) for term in np.flatnonzero(mine.terms != yours.terms))


def _same(mine: Any, yours: Any) -> bool:
    parts = [action if isinstance(action, tuple) else (action,) for action in (mine, yours)]
    return all(np.array_equal(one, other) for one, other in zip(*parts, strict=True))


def _alike(a: list[Moment], b: list[Moment]) -> bool:
    return len(a) == len(b) and not any(
        any(True for _ in _differences(mine, yours)) for mine, yours in zip(a, b, strict=True)
    )


class Row(NamedTuple):
    """A relation in one kind of environment."""

    relation: str
    worlds: int
    """Pairs that showed something."""
    wanted: int
    decisions: int
    leaking: int
    """Pairs with an undeclared difference."""
    declaring: int
    """Pairs with a declared one."""
    places: tuple[str, ...]
    """Where undeclared differences were."""
    known: tuple[str, ...]
    """Where declared ones were."""

    @property
    def verdict(self) -> str:
        """LEAK, ok, or no effect: too few pairs showed anything."""
        if self.leaking:
            return "LEAK"
        return "ok" if self.worlds >= self.wanted else "no effect"


TRIES = 4


def check(
    relation: str,
    draw: Callable[[np.random.Generator], tuple[Make, World]],
    wanted: int,
    seed: int = 0,
    policy: Any = None,
) -> Row:
    """Compare pairs of worlds until `wanted` have shown something (at most TRIES times as many).

    Args:
        relation: of RELATIONS.
        draw: from random numbers to an environment's maker and a world.
        wanted: pairs.
        seed: of everything random.
        policy: see `compared`.
    """
    shown = decisions = leaking = declaring = 0
    places: dict[str, None] = {}
    known: dict[str, None] = {}
    for number, child in enumerate(np.random.SeedSequence(seed).spawn(TRIES * wanted)):
        rng = np.random.default_rng(child)
        make, world = draw(rng)
        if relation == "run_times":
            world = _run(make, world, number, policy)
        other = RELATIONS[relation].change(world, rng)
        found = compared(make, world, other, RELATIONS[relation].known, number, policy)
        shown, decisions = shown + found.effect, decisions + found.decisions
        leaking, declaring = leaking + bool(found.undeclared), declaring + bool(found.declared)
        places |= dict.fromkeys(map(_place, found.undeclared))
        known |= dict.fromkeys(map(_place, found.declared))
        if shown >= wanted:
            break
    return Row(relation, shown, wanted, decisions, leaking, declaring, tuple(places), tuple(known))


def _run(make: Make, world: World, seed: int, policy: Any) -> World:
    """Return the world with the starts and finishes of its run."""
    env = make(world.jobs)
    played(env, seed, policy)
    table, times = env.jobs(), []
    for name in ("start_time", "finish_time"):
        known = np.full(len(world.jobs), np.nan)
        found = np.asarray(table[name], float)
        known[: len(found)] = np.where(found < 0, np.nan, found)
        times.append(known)
    return world._replace(start=times[0], finish=times[1])


def _place(found: Difference) -> str:
    return found.leaf if found.column < 0 else f"{found.leaf}[{found.column}]"
