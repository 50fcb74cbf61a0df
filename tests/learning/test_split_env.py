"""A batch that several processes step is the batch it was made from, whatever happens to the processes."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.vector import VectorWrapper

sys.path.insert(0, str(Path(__file__).parent))

from broken_environments import MadeBy, burst, hang, leave
from test_shared_vectors import alive, left_behind, wait_until

from environment import make_vec
from schedrl.envs.deeprm.vector import DeepRMVectorEnv
from schedrl.envs.probes import MaskedBestAction
from schedrl.envs.simple_cluster.vector import SimpleClusterVectorEnv
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.episodes import EpisodeCollector
from schedrl.learning.lost_workers import SignsOfLife, WorkersLost
from schedrl.learning.rollout import Collector
from schedrl.learning.split_env import SplitVectorEnv
from schedrl.learning.split_memory import LOG
from schedrl.settings import UserError

KINDS = {
    "deeprm": (DeepRMVectorEnv, {"sequence_length": 12}),
    "deeprm, few sequences": (DeepRMVectorEnv, {"sequence_length": 12, "num_sequences": 5}),
    "simple_cluster": (SimpleClusterVectorEnv, {"num_jobs": 12}),
    "elastic": (SimpleClusterVectorEnv, {"num_jobs": 12, "action": "elastic"}),
}
SIZE, SEED = 11, 3


def whole(kind="deeprm", size=SIZE, **changes):
    cls, settings = KINDS[kind]
    return cls(num_envs=size, **settings, **changes)


@pytest.fixture
def split():
    """Return what splits an environment; its workers end with the test."""
    made = []

    def make(env=None, workers=2, **options):
        made.append(SplitVectorEnv(whole() if env is None else env, workers, seed=SEED, **options))
        return made[-1]

    yield make
    for env in made:
        env.close()
    assert not multiprocessing.active_children()


def player(env):
    """Return a function that chooses legal actions by a random stream of its own."""
    actions, rng = ActionSpec.of(env.single_action_space), np.random.default_rng(0)

    def choose(obs):
        mask = obs["action_mask"]
        stored = np.zeros((len(mask), *actions.shape), actions.dtype)
        picked = [np.where(part, rng.random(part.shape), -1).argmax(1) for part in actions.split(mask)]
        columns = [*(choice[:, None] for choice in picked)]
        if actions.low:
            columns.append(rng.uniform(actions.low, actions.high, (len(mask), len(actions.low))))
        stored[:] = np.concatenate(columns, axis=1) if stored.ndim > 1 else picked[0]
        return actions.decode(stored)

    return choose


def played(env, steps, disturb=lambda env, step: None, obs=None):
    """Play from a reset (or from `obs`); return all that the environment said at each step."""
    choose, said = player(env), []
    obs = env.reset(seed=SEED)[0] if obs is None else obs
    for step in range(steps):
        disturb(env, step)
        said.append(env.step(choose(obs)))
        obs = said[-1][0]
    return said


def require_same(a, b, where=""):
    """Fail where two results differ in anything but what Gymnasium's masks hide."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for name in a:
            shown = slice(None) if isinstance(a[name], dict) else a.get(f"_{name}", slice(None))
            alike = (a[name], b[name]) if isinstance(shown, slice) else (a[name][shown], b[name][shown])
            require_same(*alike, f"{where} {name}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            require_same(x, y, f"{where} {i}")
    elif np.asarray(a).dtype == object:
        require_same(list(a), list(b), where)
    else:
        assert np.asarray(a).dtype == np.asarray(b).dtype, where
        np.testing.assert_array_equal(a, b, err_msg=where)


def workers_of(env):
    return [process.pid for process in env.processes]


# -- the same rollouts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "workers"), [*((kind, 2) for kind in KINDS), ("deeprm", 3)])
def test_workers_say_what_one_batch_says(kind, workers, split):
    env, steps = whole(kind), 2 * LOG + 40
    said = played(env, steps)
    again = played(split(whole(kind), workers), steps)
    require_same(said, again)
    assert sum(int((step[2] | step[3]).sum()) for step in said) > 2 * SIZE, "too few episodes ended to tell"


def test_workers_give_the_rollouts_of_as_many_batches_in_this_process(split):
    env = split(workers=3)
    sizes = [rows.stop - rows.start for rows in env.memory.rows]
    batches = [whole(size=size) for size in sizes]
    counter = {"next": 0}

    def claim(count):
        counter["next"] += count
        return counter["next"] - count

    for batch in batches:
        batch.claim = claim
    observed = [batch.reset(seed=SEED)[0] for batch in batches]
    obs, choose = env.reset(seed=SEED)[0], player(env)
    for _ in range(60):
        for rows, mine in zip(env.memory.rows, observed, strict=True):
            require_same({name: leaf[rows] for name, leaf in obs.items()}, mine)
        actions = choose(obs)
        obs, rewards, *_ = env.step(actions)
        parts = [batch.step(actions[rows]) for batch, rows in zip(batches, env.memory.rows, strict=True)]
        observed = [part[0] for part in parts]
        np.testing.assert_array_equal(rewards, np.concatenate([part[1] for part in parts]))


def test_rollouts_of_the_collector_are_the_same_arrays(split):
    def rollout(env):
        collector = Collector(env, 70, SEED)
        choose = player(env)
        zeros = np.zeros(SIZE, np.float32)
        for _ in range(2):
            found = collector.collect(lambda obs, step: (choose(obs), zeros, zeros), lambda obs: zeros)
        names = ("actions", "rewards", "terminated", "truncated", "episodes", "obs")
        return {name: getattr(found, name) for name in names} | {"state": collector.state()}

    require_same(rollout(whole(copy=False)), rollout(split(whole(copy=False), copy=False)))


def test_whole_episodes_of_chosen_sequences(split):
    def episodes(env):
        collector = EpisodeCollector(env, 2, SEED)
        choose = player(env)
        for _ in range(2):
            found = collector.collect(lambda obs, rows: choose(obs))
        return {name: getattr(found, name) for name in ("rewards", "times", "obs", "ended")}

    require_same(episodes(whole(size=8)), episodes(split(whole(size=8))))


def test_resets_go_on_where_the_sequences_are(split):
    def observed(env):
        first = env.reset(seed=SEED)[0]["queue"].copy()
        second = env.reset()[0]["queue"].copy()
        chosen = env.reset(options={"sequences": np.repeat(np.arange(4, 15), 1)})[0]["queue"].copy()
        return [first, second, chosen, env.reset()[0]["queue"].copy(), env.reset(seed=9)[0]["queue"].copy()]

    require_same(observed(whole()), observed(split()))


def test_a_state_is_taken_over_by_any_number_of_workers(split):
    said = played(whole(), 120)
    first = split(workers=3)
    obs = played(first, 70)[-1][0]
    state = first.get_state()
    here = whole()
    here.reset(seed=SEED)
    here.set_state(state)
    assert int(state["cursor"]) == first._cursor
    choose = player(here)
    for _ in range(70):  # so far has its random stream come
        choose({"action_mask": np.ones((SIZE, here.single_action_space.n), bool)})
    other = split(workers=2)
    other.reset(seed=SEED)
    other.set_state(state)
    seen = obs
    for step in range(70, 120):
        actions = choose(seen)
        seen, *rest = here.step(actions)
        require_same((seen, *rest[:3]), other.step(actions)[:4])
        require_same((seen, *rest[:3]), said[step][:4])


def test_it_is_looked_at_as_the_one_it_was_made_from(split):
    env, twin = split(whole("simple_cluster")), whole("simple_cluster")
    played(env, 30)
    played(twin, 30)
    np.testing.assert_array_equal(env.times(), twin.times())
    np.testing.assert_array_equal(env.action_masks(), twin.action_masks())
    require_same(env.observe_as("state"), twin.observe_as("state"))
    assert env.render() == twin.render()
    assert env.mean_reward_terms() == pytest.approx(twin.mean_reward_terms())


def test_the_front_door_makes_it():
    env = make_vec("deeprm", num_envs=4, seed=SEED, num_workers=2)
    try:
        assert isinstance(env, SplitVectorEnv)
        require_same(make_vec("deeprm", num_envs=4, seed=SEED).reset()[0], env.reset()[0])
    finally:
        env.close()
    with pytest.raises(ValueError, match="closed"):
        env.step(np.zeros(4, int))


# -- what happens to workers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_worker_is_replaced_and_nothing_else_changes(number, split, capsys):
    moments, victims = {5: 1, LOG + 7: 0, 2 * LOG: 1}, []

    def disturb(env, step):
        if step in moments and (number == signal.SIGKILL or not victims):
            victims.append(workers_of(env)[moments[step]])
            os.kill(victims[-1], number)

    said = played(whole(), 2 * LOG + 20)
    env = split(timeout=60.0 if number == signal.SIGKILL else 8.0)
    require_same(said, played(env, 2 * LOG + 20, disturb))
    told = capsys.readouterr().err.splitlines()
    reason = "killed by SIGKILL" if number == signal.SIGKILL else "no sign of life for 8 s"
    assert told == [
        f"worker {worker} (process {victim}) was lost: {reason}; a new one takes its place "
        f"({i} of at most 10)"
        for i, (worker, victim) in enumerate(zip(moments.values(), victims, strict=False), 1)
    ]
    assert not any(map(alive, victims))


def test_ctrl_c_and_sigterm_are_the_parents_to_handle(split):
    def disturb(env, step):
        for pid in workers_of(env) if step == 10 else ():
            os.kill(pid, signal.SIGINT)
            os.kill(pid, signal.SIGTERM)

    env = split()
    before = workers_of(env)
    require_same(played(whole(), 20), played(env, 20, disturb))
    assert workers_of(env) == before


def test_too_many_losses_end_it(split):
    env = split(max_restarts=0)
    env.reset(seed=SEED)
    os.kill(workers_of(env)[1], signal.SIGKILL)
    with pytest.raises(
        WorkersLost, match="worker 1 was lost: killed by SIGKILL, and max_restarts 0 are used"
    ):
        played(env, 3)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            hang,
            "worker 0 was lost: no sign of life for 2.5 s while it was to start; is the machine overloaded",
        ),
        (leave, "exit code 3 before it began to work"),
        (burst, r"exit code 1 \(RuntimeError: no room for 5\)"),
    ],
)
def test_a_worker_that_cannot_start_ends_it(make, says):
    with pytest.raises(WorkersLost, match=says):
        SplitVectorEnv(MadeBy(make, 10), 2, timeout=0.5 if make is hang else 60.0)
    assert not multiprocessing.active_children()


def test_silence_is_judged_by_signs_of_life():
    counters = np.array([1, 1, 1, 0])
    signs = SignsOfLife(counters, 1.0)
    signs._since -= 2.0
    counters[1] += 1
    assert signs.silent() == {0: 1.0, 2: 1.0}  # the last one is still starting
    signs._since -= 4.0
    assert signs.silent() == {0: 1.0, 1: 1.0, 2: 1.0, 3: 5.0}
    signs._looked -= 100.0  # the parent itself stood still
    assert signs.silent() == {}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="counts what is in /dev/shm")
@pytest.mark.parametrize("end", ["close", "drop", "exit", "SIGKILL"])
def test_nothing_is_left_behind(end, tmp_path):
    before = left_behind()
    ends = {
        "close": "env.close()",
        "drop": "del env; import gc; gc.collect()",
        "exit": "sys.exit()",
        # One that is frozen can't see that its parent has gone.
        "SIGKILL": "os.kill(pids[1], signal.SIGSTOP); os.kill(os.getpid(), signal.SIGKILL)",
    }
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, os, signal, sys, time\n"
        "from environment import make_vec\n"
        "if __name__ == '__main__':\n"
        "    env = make_vec('deeprm', num_envs=4, num_workers=2)\n"
        "    env.reset(seed=0)\n"
        "    pids = [process.pid for process in multiprocessing.active_children()]\n"
        "    print(*pids, flush=True)\n"
        f"    {ends[end]}\n"
        "    assert not multiprocessing.active_children()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=240
    )
    assert done.returncode == (-signal.SIGKILL if end == "SIGKILL" else 0), done.stderr
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    wait_until(lambda: not any(map(alive, pids)))
    wait_until(lambda: left_behind() <= before)  # what other tests have there comes and goes


# -- what is refused -----------------------------------------------------------------------------------------


def test_what_is_wrong_with_actions_is_said_and_changes_nothing(split):
    env = split()
    with pytest.raises(ValueError, match="call reset"):
        env.step(np.zeros(SIZE, int))
    env.reset(seed=SEED)
    for wrong, says in (
        (np.full(SIZE, 99), "99 is out of range; it must be within 0..10"),
        (np.zeros(SIZE - 1, int), r"shape \[11\]"),
        (np.zeros(SIZE), "int64"),
        ((np.zeros(SIZE, int), np.zeros(SIZE, int)), "1 parts, got 2"),
    ):
        with pytest.raises(ValueError, match=says):
            env.step(wrong)
    require_same(played(whole(), 5), played(env, 5))


def test_what_a_worker_refuses_is_raised_here(split):
    with pytest.raises(UserError, match="sequence -1 does not exist"):
        split().reset(seed=SEED, options={"sequences": np.arange(-1, SIZE - 1)})


def test_what_cannot_be_split_is_refused():
    with pytest.raises(UserError, match="num_workers is 12, but there are only num_envs 11"):
        SplitVectorEnv(whole(), 12)
    with pytest.raises(UserError, match="MaskedBestAction can't be split: it has no infos_told"):
        SplitVectorEnv(MaskedBestAction(8), 2)
    with pytest.raises(UserError, match="VectorWrapper can't be split"):
        SplitVectorEnv(VectorWrapper(whole()), 2)
