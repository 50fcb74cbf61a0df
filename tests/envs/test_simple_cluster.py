"""`SimpleClusterEnv` stepped by hand on toys whose times and rewards are worked out in the comments."""

import numpy as np
import pytest

import environment
from schedrl.envs.simple_cluster import drawing, play, workloads_of
from schedrl.envs.simple_cluster.jobs import Streamed
from schedrl.envs.simple_cluster.reward_settings import PRESETS, weights_of
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.evaluation.cluster import measure, timeline
from schedrl.evaluation.cluster.fragmentation import fragmentation
from schedrl.evaluation.cluster.jobs_csv import JobsFile
from schedrl.evaluation.cluster.sequences import conclusion, evaluate
from schedrl.settings import UserError
from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.schedule import check
from schedrl.workload.cluster_file import default_cluster, read_cluster
from schedrl.workload.types import Workload

RESOURCES = ["cpu", "memory", "gpu"]


def toy(*jobs, **columns):
    """Jobs as (arrival, duration, cpu, memory, gpu)."""
    arrival, duration, *demand = np.array(jobs, float).T
    return Workload(arrival, duration, np.array(demand).T, RESOURCES, "s", **columns)


def one_server(workload, **settings):
    """One server of 4 cores, 8 GB and 2 GPUs, times measured in the mean gap and duration of the toy."""
    given = workload if isinstance(workload, Workload) else workload[0]
    scales = drawing.scales_of(given, None, 1)
    settings = {"num_servers": 1, "server": (4, 8, 2), "scales": scales} | settings
    return environment.make("simple_cluster", workload=workload, **settings)


TWO = toy((0, 10, 4, 1, 0), (2, 20, 3, 1, 0))


def test_two_jobs_by_hand():
    """Job 0 takes all cores for 10; job 1 comes at 2, waits until 10, is done at 30."""
    env = one_server(TWO)
    obs, _ = env.reset()
    assert obs["action_mask"].tolist() == [True, False], "nothing runs, so waiting is not legal"
    obs, reward, terminated, truncated, info = env.step(0)
    # Nothing fits at 2, so time goes on to 10: job 1 has waited 8 of its 20.
    assert (info["time"], reward) == (10.0, pytest.approx(-8 / 20))
    assert obs["action_mask"].tolist() == [True, False]
    *_, terminated, truncated, info = env.step(0)
    assert (terminated, truncated, info["time"]) == (True, False, 30.0)
    table = env.jobs()
    assert table["start_time"].tolist() == [0, 10]
    assert table["finish_time"].tolist() == [10, 30]
    assert table["status"].tolist() == ["finished", "finished"]
    assert table["machine"].tolist() == [0, 0]
    schedule = env.schedule()
    assert schedule.finish.tolist() == [10, 30]
    assert schedule.end_time == 30


def test_waiting_lasts_until_the_next_event():
    """Beside a running job the head may wait: until the arrival at 3, then until the finish at 10."""
    env = one_server(toy((0, 10, 1, 1, 0), (1, 5, 1, 1, 0), (3, 5, 1, 1, 0)))
    env.reset()
    obs, *_, info = env.step(0)
    assert info["time"] == 1.0
    assert obs["action_mask"].tolist() == [True, True]
    *_, info = env.step(1)
    assert info["time"] == 3.0
    obs, *_, info = env.step(1)
    assert info["time"] == 10.0
    assert obs["action_mask"].tolist() == [True, False], "nothing runs any more"
    idle = one_server(toy((0, 10, 1, 1, 0), (3, 5, 1, 1, 0)), wait_when_idle=True)
    obs, _ = idle.reset()
    assert obs["action_mask"].tolist() == [True, True]
    obs, *_, info = idle.step(1)
    assert (info["time"], obs["action_mask"].tolist()) == (3.0, [True, False]), "there is nothing to wait for"


def test_decisions_at_every_event():
    env = one_server(TWO, decide="every_event")
    obs, _ = env.reset()
    seen = []
    for action in (0, 1, 1, 0, 1):
        obs, _, terminated, _, info = env.step(action)
        seen.append((info["time"], obs["action_mask"].tolist()))
    assert seen[0] == (0.0, [False, True]), "job 0 runs; time stands still until somebody waits"
    assert [time for time, _ in seen] == [0.0, 2.0, 10.0, 10.0, 30.0]
    assert terminated


def test_an_illegal_action_costs_and_changes_nothing_and_the_episode_ends():
    env = one_server(TWO, mask=False, episode_max_decisions=12, illegal_penalty=-7)
    obs, _ = env.reset()
    assert obs["action_mask"].all()
    before = {name: leaf.copy() for name, leaf in obs.items()}
    for step in range(1, 13):
        obs, reward, terminated, truncated, info = env.step(1)
        assert (reward, info["reward_terms"]["illegal"], info["illegal_actions"]) == (-7, -7, step)
        for name, leaf in obs.items():
            np.testing.assert_array_equal(leaf, before[name])
        assert (terminated, truncated) == (False, step == 12)
    assert env.schedule().status.tolist() == [5, 5], "unfinished"


def test_continuing_episodes_are_cut_off_when_the_last_job_has_come():
    env = one_server(TWO, termination="continuing")
    env.reset()
    *_, terminated, truncated, info = env.step(0)
    assert (terminated, truncated, info["time"]) == (False, True, 2.0)


def test_load_history_and_time_since_the_last_burst():
    """Half of the server from 0 on; two jobs at once at 30 are a burst (mean gap 20), one at 60 is not."""
    env = one_server(
        toy((0, 100, 2, 4, 1), (30, 5, 1, 1, 0), (30, 6, 1, 1, 0), (60, 7, 1, 1, 0)),
        **{"history_time": 30, "rate_gaps": 1, "burst_level": 2},
    )
    history, rate, since_arrival, since_burst = 2 * 3 + 2, 2, 3, 4
    obs, _ = env.reset()
    assert (obs["backlog"][since_burst], obs["cluster"][0, history]) == (1, 0), "none yet"
    obs, *_ = env.step(0)  # to 30
    assert obs["backlog"][since_burst] == 0
    assert obs["backlog"][rate] == pytest.approx((np.exp(-1.5) + 2) / 4)
    assert obs["cluster"][0, history] == pytest.approx(0.5 * (1 - np.exp(-1)))
    obs, *_ = env.step(1)  # to 60, 1.5 mean gaps later
    assert obs["backlog"][since_burst] == pytest.approx(1.5 / 2.5)
    assert obs["backlog"][since_arrival] == 0
    assert obs["cluster"][0, history] == pytest.approx(0.5 * (1 - np.exp(-2)))


@pytest.mark.parametrize(
    ("order", "expected"), [("arrival", [1, 2, 3]), ("sjf", [3, 2, 1]), ("priority", [2, 3, 1])]
)
def test_queue_orders(order, expected):
    """At 10 job 1 has waited 9 (urgency 1: 1 + 9/10), 2 has waited 8 (3: 5.4), 3 has waited 1 (3: 3.3)."""
    jobs = toy((0, 10, 4, 1, 0), (1, 30, 1, 1, 0), (2, 20, 1, 1, 0), (9, 5, 1, 1, 0), priority=[0, 1, 3, 3])
    env = one_server(jobs, queue_order=order, aging_time=10, representation="state")
    env.reset()
    obs, *_ = env.step(0)
    estimates = {30: 1, 20: 2, 5: 3}
    assert [estimates[e] for e in obs["jobs"][:3, 0]] == expected


def test_aging_lets_the_waiting_catch_up():
    """A job of class 1 that has waited 100 stands before one of class 3 just come, if aging is fast."""
    jobs = toy((0, 100, 4, 1, 0), (0, 30, 1, 1, 0), (99, 20, 1, 1, 0), priority=[9, 1, 3])
    for aging_time, first in ((10, 30), (1000, 20)):
        env = one_server(jobs, queue_order="priority", aging_time=aging_time, representation="state")
        env.reset()
        obs, *_ = env.step(0)
        assert obs["jobs"][0, 0] == first


def test_a_visible_job_to_a_machine():
    env = environment.make(
        "simple_cluster",
        workload=toy((0, 10, 4, 1, 0), (0, 20, 2, 1, 1), (0, 30, 4, 8, 2)),
        num_servers=2,
        server=(4, 8, 2),
        action="job_machine",
        num_job_slots=3,
    )
    obs, _ = env.reset()
    assert obs["action_mask"].tolist() == [True] * 6 + [False]
    obs, *_ = env.step(2 * 2 + 1)  # the longest, on the second machine
    assert obs["action_mask"].tolist() == [True, False, True, False, False, False, True]
    *_, info = env.step(1 * 2 + 0)
    table = env.jobs()
    assert table["machine"].tolist() == [-1, 0, 1]
    assert table["start_time"].tolist() == [-1, 0, 0]


def test_gangs_start_whole_over_machines_and_are_never_counted_in_totals():
    """3 cores a piece on servers of 4: together 8 cores would hold two, but only one fits on each."""
    three = toy((0, 10, 3, 1, 0), (0, 10, 3, 1, 0), instances=[2, 3])
    env = environment.make("simple_cluster", workload=three, num_servers=2, server=(4, 8, 0))
    obs, _ = env.reset()
    assert obs["action_mask"].tolist() == [True, True, False]
    *_, terminated, _, _ = env.step(1)
    assert terminated
    assert env.jobs()["status"].tolist() == ["finished", "rejected"]
    assert env.schedule().placed.machine[:2].tolist() == [1, 0]


def test_measures_count_what_elastic_jobs_were_granted():
    """Half of the 4 cores for 20, all memory and one of 2 GPUs."""
    env = one_server(toy((0, 10, 4, 8, 1)), action="elastic")
    env.reset()
    env.step((0, 0, np.array([0.5, 1.0])))
    found = env.schedule()
    assert found.granted.tolist() == [[2, 8, 1]]
    used = measure(found)["utilisation"]
    assert [used[name]["mean"] for name in RESOURCES] == [0.5, 1.0, 0.5]
    assert timeline.heat(found, 1).share.tolist() == [[1.0]]
    assert fragmentation(found)["mean"] is not None
    check(env.schedule())  # done after 20, twice its duration
    for wrong in (0.9, 1.1):
        late = env.schedule()
        with pytest.raises(UserError, match="job 0 arrived"):
            check(late._replace(finish=late.finish * wrong))


class AnyShares:
    """Places the head somewhere legal, or waits, and gives it any share."""

    representation = "slots"

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def predict(self, obs, deterministic=True):
        """Draw everything."""
        count, devices = len(obs["action_mask"]), 2
        legal = obs["action_mask"][:, :-devices]
        places = np.where(legal, self.rng.random(legal.shape), -1).argmax(axis=1)
        return places, np.zeros(count, int), self.rng.random((count, 2)).astype(np.float32)


def test_elastic_schedules_could_have_happened():
    for schedule in play(AnyShares(), SimpleClusterSettings(num_jobs=50, action="elastic"), range(5)):
        assert (schedule.granted < schedule.workload.demand).any()
        check(schedule)


class Blind:
    """Always chooses the same."""

    representation = "slots"

    def __init__(self, choice):
        self.choice = choice

    def predict(self, obs, deterministic=True):
        """Choose without looking."""
        return np.full(len(obs["action_mask"]), self.choice)


def test_illegal_actions_and_rejections_are_in_the_measures(tmp_path):
    settings = SimpleClusterSettings(num_jobs=5, mask=False, num_servers=2, episode_max_decisions=30)
    (blind,) = play(Blind(0), settings, [0])
    assert measure(blind)["invalid_actions"] == blind.invalid_actions > 0
    replay = evaluate({"blind": Blind(0)}, settings, num_sequences=20, modes=("greedy",), rules=("sjf+skip",))
    assert [replay.entries[i].label for i in replay.ranked()][-1] == "blind (greedy)", (
        "jobs that it never let come don't flatter it"
    )
    assert replay.difference(1, 0).verdict == "other jobs"
    assert any("cut off before" in line for line in replay.warnings())
    assert "there is no verdict" in conclusion(replay, "blind (greedy)")
    refusing = settings.replace(allow_reject=True, mask=True)
    replay = evaluate({"picky": Blind(2)}, refusing, num_sequences=20, modes=("greedy",), rules=("sjf+skip",))
    assert "turned away 100 jobs" in conclusion(replay, "picky (greedy)")
    assert replay.difference(1, 0).verdict == "other jobs"
    assert any("turned away 100 jobs" in line for line in replay.warnings())
    (picky,) = play(Blind(2), refusing, [0])
    found = measure(picky)
    assert (found["rejected"], found["acceptance_rate"]) == (5, 0.0)
    assert found["reject_reasons"] == {"the policy turned it away": 5}
    with JobsFile(tmp_path / "jobs.csv", 10.0) as file:
        file.add("picky", picky)
    assert (tmp_path / "jobs.csv").read_text().count("rejected,the policy turned it away") == 5


def test_rejection_by_the_policy():
    env = one_server(TWO, allow_reject=True, reject_penalty=-3)
    obs, _ = env.reset()
    assert obs["action_mask"].tolist() == [True, True, False]
    *_, reward, _, _, info = env.step(1)
    assert info["reward_terms"]["rejected"] == -3
    assert env.jobs()["status"].tolist()[0] == "rejected"


def test_elastic_shares_and_speed():
    """Half the cores and all memory: half speed, so 10 takes 20, and half of it is excess: 10 / 10."""
    env = one_server(toy((0, 10, 4, 8, 1)), action="elastic")
    env.reset()
    *_, reward, terminated, _, info = (None, *env.step((0, 1, np.array([0.5, 1.0], np.float32))))[1:]
    assert (terminated, info["time"], reward) == (True, 20.0, pytest.approx(-1.0))
    assert env.jobs()["speed"].tolist() == [0.5]
    assert env.schedule().placed.devices.tolist() == [2], "the second device"
    env.reset()
    *_, info = env.step((0, 0, [-5.0, 9.0]))  # cut to 0.25 and 1
    assert info["time"] == 40.0
    env.reset()
    with pytest.raises(ValueError, match="are no numbers"):
        env.step((0, 0, [np.nan, 1.0]))


def test_elastic_takes_what_is_left_but_not_less_than_the_least():
    """Two jobs of 4 cores on 4: the first takes 3, the second fits with its least, 1, and gets that."""
    env = one_server(toy((0, 10, 4, 1, 0), (0, 12, 4, 1, 0), (0, 13, 4, 1, 0)), action="elastic")
    env.reset()
    obs, *_ = env.step((0, 0, [0.75, 1.0]))
    obs, *_ = env.step((0, 0, [1.0, 1.0]))
    assert env.jobs()["speed"].tolist()[:2] == [0.75, 0.25]
    assert env.jobs()["status"].tolist()[:2] == ["finished", "running"], (
        "nothing fitted until the first ended"
    )


ALONE = toy((0, 10, 4, 8, 0), (0, 30, 2, 0, 0))
"""Mean duration 20; both arrive at once, so the mean gap is taken as that too."""


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("slowdown", 10 / 30),
        ("completion_time", (2 * 10 + 1 * 30) / 20),
        ("makespan", 40 / 20),
        # cpu, memory full and no GPU used of three resources: 2/3 for 10; then 0.5/3 for 30
        ("utilisation", (10 * 2 / 3 + 30 * 0.5 / 3) / 20),
        # free GPUs beside full cores: 1/3 for 10; then shares .5, 1, 1: 5/6 - 1/2 for 30
        ("fragmentation", (10 / 3 + 30 / 3) / 20),
        # limits are 3 x 10 and 3 x 30: neither is late
        ("sla", 0.0),
        ("waiting", 1 - np.exp(-0.1 * 10)),
        ("finished", 2.0),
    ],
)
def test_what_each_term_counts(term, expected):
    env = one_server(ALONE, reward=f"{term}=1", queue_order="arrival")
    env.reset()
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(0)
        assert reward == pytest.approx(sum(info["reward_terms"].values()))
        total, ended = total + reward, terminated or truncated
    assert total == pytest.approx(expected)


@pytest.mark.parametrize(("deadline", "cost"), [(45, 0), (35, 1), (24, 2), (15, 4)])
def test_a_late_job_costs_by_steps(deadline, cost):
    """It is done at 40: in time, late by less than half of what it was allowed, by less than all, by more."""
    env = one_server(
        toy((0, 10, 4, 8, 0), (0, 30, 2, 0, 0), deadline=[np.nan, deadline]),
        reward="sla=-1",
        queue_order="arrival",
    )
    env.reset()
    assert env.step(0)[1] + env.step(0)[1] == -cost


def test_presets_are_the_documented_ones():
    assert {name: {k: v for k, v in weights_of(name).items() if v} for name in PRESETS} == {
        "slowdown": {"slowdown": -1.0},
        "batch": {"makespan": -1.0, "utilisation": 0.5},
        "balanced": {"completion_time": -0.5, "utilisation": 0.3, "fragmentation": -0.2, "sla": -0.1},
        "operations": {"finished": 1.0, "waiting": -1.0, "fragmentation": -0.5},
    }
    with pytest.raises(UserError, match="nearest: slowdown"):
        weights_of("slowdwn")
    for wrong, says in (("sla", "needs a weight"), ("sla=x", "no number"), ("sla=0", "always 0")):
        with pytest.raises(UserError, match=says):
            weights_of(wrong)


class FirstFit:
    """Starts the head on the first machine that has room."""

    representation = "slots"

    def predict(self, obs, deterministic=True):
        """Choose the first legal action."""
        return obs["action_mask"].argmax(axis=-1)


def test_a_played_policy_gives_the_schedules_of_the_same_rule():
    settings = SimpleClusterSettings(
        num_jobs=40, queue_order="arrival", action="job_machine", num_job_slots=40
    )
    numbers = [3, 0, 300]
    schedules = play(FirstFit(), settings, numbers, seed=5, family="test")
    workloads = workloads_of(settings, 4, 5, "test")
    for number, schedule in zip(numbers[:2], schedules, strict=False):
        expected = simulate(workloads[number], default_cluster(), "fifo+first_fit+skip")
        np.testing.assert_array_equal(schedule.start, expected.start)
        np.testing.assert_array_equal(schedule.finish, expected.finish)
        np.testing.assert_array_equal(schedule.placed.machine, expected.placed.machine)
    assert not schedules[0].workload.same_as(schedules[1].workload)


@pytest.mark.parametrize("workload", ["poisson", "bursty", "heavy_tail", "correlated", "lublin"])
def test_every_generator_comes_at_the_load_of_this_cluster(workload):
    settings = SimpleClusterSettings(workload=workload, load=0.6, num_servers=10, num_jobs=100)
    found = workloads_of(settings, 64, family="validation")
    work = sum((np.asarray(w.instances) * w.duration) @ w.demand for w in found)
    span = sum(w.arrival[-1] for w in found)
    capacity = np.array([80.0, 320.0, 20.0])[: work.size]
    assert (work / capacity / span).max() == pytest.approx(0.6, rel=0.35)
    again = workloads_of(settings, 3, family="validation")
    assert again[2].same_as(found[2])
    assert not workloads_of(settings, 1, family="test")[0].same_as(found[0])


def test_a_daily_cycle_begins_at_any_hour():
    """Blocks of half an hour: at night jobs are far apart, at noon close together."""
    found = []
    for block in range(12):
        source = Streamed(SimpleClusterSettings(workload="diurnal", num_jobs=10), 0, "validation")
        found.append(source.workload(block * source.block).arrival[-1])
    assert max(found) > 4 * min(found)


def test_training_loads_come_in_turn_by_blocks():
    settings = SimpleClusterSettings(train_loads=(0.3, 1.2), num_jobs=400)
    env = environment.make_vec("simple_cluster", 250, **settings.to_dict())
    env.reset(seed=0)
    last = env.clusters.state.arrays.times[:, :, 0].max(axis=1)
    block = env._jobs.block
    assert last[:block].mean() == pytest.approx(4 * last[block:].mean(), rel=0.2)


def test_training_servers_come_in_turn_by_blocks():
    """Each with every load; a cluster of fewer looks as it would alone, beside machines that it lacks."""
    settings = SimpleClusterSettings(
        action="job_machine", train_servers=(2, 5), train_loads=(0.5, 1.0), num_jobs=400
    )
    env = environment.make_vec("simple_cluster", 500, **settings.to_dict())
    obs, _ = env.reset(seed=0)
    block = env._jobs.block
    there = (obs["cluster"].sum(axis=2) > 0).sum(axis=1)
    assert [set(there[k * block : (k + 1) * block].tolist()) for k in range(4)] == [{2}, {2}, {5}, {5}]
    last = env.clusters.state.arrays.times[:, :, 0].max(axis=1)
    spans = [last[k * block : (k + 1) * block].mean() for k in range(4)]
    for shorter, longer, times in ((1, 0, 2), (3, 2, 2), (2, 0, 2.5)):
        assert spans[longer] / spans[shorter] == pytest.approx(times, rel=0.25)
    assert (
        len(environment.make("simple_cluster", **settings.to_dict(), family="test").reset()[0]["cluster"])
        == 5
    )
    places = obs["action_mask"][:, :-1].reshape(500, 10, 5)
    assert not places[: 2 * block, :, 2:].any()
    small = environment.make_vec(
        "simple_cluster", block, **(settings.to_dict() | {"num_servers": 2, "train_servers": (2,)})
    )
    seen, _ = small.reset(seed=0)
    for name in ("queue", "backlog"):
        np.testing.assert_allclose(seen[name], obs[name][:block], rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(seen["cluster"], obs["cluster"][:block, :2], rtol=1e-5)


@pytest.mark.parametrize("order", ["sjf", "arrival", "priority"])
def test_a_job_that_waited_too_long_goes_next(order):
    """Small jobs that go first for ever would starve one that needs the whole server."""
    jobs = toy((0, 10, 4, 1, 0), (1, 100, 4, 1, 0), *((2 + 2 * i, 5, 1, 1, 0) for i in range(100)))

    def begin_of_the_large(limit):
        env = one_server(jobs, action="job_machine", queue_order=order, wait_limit=limit, num_job_slots=200)
        obs, _ = env.reset()
        over = False
        while not over:  # any small job before the large one
            legal = np.flatnonzero(obs["action_mask"])
            places = legal[:-1] if len(legal) > 1 else legal
            obs, _, terminated, truncated, _ = env.step(int(places[0 if order == "sjf" else -1]))
            over = terminated or truncated
        return env.jobs()["start_time"][1]

    assert begin_of_the_large(None) > 200
    assert 61 < begin_of_the_large(60.0) < 68
    assert begin_of_the_large(0.0) == 10.0


TRACE = "job_id,submit_time,run_time,cpu,memory,gpu\n" + "".join(
    f"{i},{i * 10},{30 + i % 7},{1 + i % 4},2,{i % 2}\n" for i in range(100)
)


def test_a_trace_in_parts(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE)
    changes = {"map": "id=job_id,arrival=submit_time[s],duration=run_time[s],cpu=cpu,memory=memory,gpu=gpu"}
    settings = SimpleClusterSettings().replace(trace_file=str(path), num_jobs=15, load=None, **changes)
    train, test = (workloads_of(settings, 8, family=family) for family in ("train", "test"))
    ids = [{int(i) for w in found for i in w.id} for found in (train, test)]
    assert max(ids[0]) < 60 <= 80 <= min(ids[1])
    assert all(len(w) == 15 for w in train)
    loaded = workloads_of(settings.replace(load=0.5), 1)[0]
    assert loaded.arrival[1] - loaded.arrival[0] != 10.0
    with pytest.raises(UserError, match="20 jobs, num_jobs is 30"):
        workloads_of(settings.replace(num_jobs=30), 1)


def test_what_can_never_run_is_said(tmp_path):
    huge = toy((0, 1, 99, 1, 0))
    with pytest.raises(UserError, match="no job of the workload given can run.*larger than every machine"):
        one_server(huge)
    path = tmp_path / "tpus.toml"
    path.write_text("[[machines]]\nname = 'a'\ntpu = 4\n")
    with pytest.raises(UserError, match="asks for a resource that no machine has"):
        environment.make("simple_cluster", cluster=str(path))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"workload": "deeprm"}, "use --env deeprm"),
        ({"cluster": "x.toml", "num_servers": 3}, "leave out num_servers"),
        ({"server": (1, 2)}, "give cores, GB and GPUs"),
        ({"load": 0}, "load"),
        ({"load": 1e300}, "load"),
        ({"train_loads": (0.5, 1e300)}, "train_loads has 1e\\+300"),
        ({"num_job_slots": 10**11}, "at most 10000"),
        ({"min_share": 1.0}, "min_share"),
        ({"reward": "speed=1"}, "unknown term of the reward"),
        ({"illegal_penalty": 1}, "illegal_penalty"),
        ({"num_job_slotz": 1}, "nearest: num_job_slots"),
        ({"arrival_rate": 3.0}, "both given"),
        ({"capacity": (1.0, 2.0, 3.0)}, "the cluster says"),
    ],
)
def test_bad_settings_are_refused(wrong, says):
    with pytest.raises(UserError, match=says):
        environment.make("simple_cluster", **wrong)


def test_cluster_files(tmp_path):
    toml, csv = tmp_path / "a.toml", tmp_path / "a.csv"
    toml.write_text(
        "[[machines]]\nname = 'big'\ncount = 2\ncpu = 16\nmemory = 64\ngpu = 4\nmodel = 'V100'\n"
        "[[machines]]\nname = 'plain'\ncpu = 8\nmemory = 32\ngpu = 0\n"
    )
    csv.write_text("name,count,model,cpu,memory,gpu\nbig,2,V100,16,64,4\nplain,1,,8,32,0\n")
    for path in (toml, csv):
        machines = read_cluster(path)
        assert machines.name.tolist() == ["big-0", "big-1", "plain"]
        assert machines.capacity.tolist() == [[16, 64, 4], [16, 64, 4], [8, 32, 0]]
        assert machines.model.tolist() == ["V100", "V100", ""]
        env = environment.make("simple_cluster", cluster=str(path))
        assert env.action_space.n == 4
        assert env.settings.data().keys() == {str(path)}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.toml", "machines = 3", "write a table"),
        ("a.toml", "[[machines]\n", "not valid TOML"),
        ("a.toml", "[[machines]]\nname = 'a'\n", "no resources"),
        ("a.toml", "[[machines]]\ncpu = -1\n", "number of 0 or more"),
        ("a.toml", "[[machines]]\ncpu = 1\n[[machines]]\ngpu = 1\n", "has no gpu"),
        ("a.toml", "size = 3\n[[machines]]\ncpu = 1\n", "'size' beside"),
        ("a.csv", "name,cpu\n", "no machines"),
        ("a.csv", "name,cpu\na,x\n", "cpu of 'a'"),
        ("a.csv", "name,cpu\na,1,2\n", "line 2 has 3 values for 2"),
        ("a.csv", "name,cpu,count\na,1,0.5\n", "it must be whole"),
        ("a.csv", "name,cpu\na,0\n", "one above 0"),
        ("a.csv", "name,cpu\na,1\na,1\n", "names of their own"),
        ("a.csv", "name,cpu\na,\n", "has no cpu"),
        ("a.csv", "name,cpu,gpu\na,8,2.5\n", "has 2.5 of gpu; give whole devices"),
        ("a.csv", "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,0.5,V100\n", "give whole devices"),
        ("a.csv", "sn,cpu_milli,memory_mib,model\na,8000,1024,V100\n", "lacks the columns gpu"),
        ("a.csv", "sn,cpu_milli,memory_mib,gpu,model\n", "a header and no machines"),
        ("a.csv", "name;cpu\na;8\n", "part the columns by commas"),
        (
            "a.csv",
            f"name,cpu\na,{'9' * 5000}\n",
            r"cpu of 'a' in \S+ is '9+\.\.\.9+'; it must",
        ),
        ("a.toml", f"[[machines]]\ncpu = {'9' * 400}\n", "it must be a finite number of 0 or more"),
        ("a.csv", "name,cpu,count\na,1,600000\nb,1,600000\n", "are over 1,000,000 with 'b'"),
    ],
)
def test_bad_cluster_files(tmp_path, name, text, says):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError, match=says):
        read_cluster(path)
    with pytest.raises(UserError, match="can't read"):
        read_cluster(tmp_path / "nowhere.csv")


def test_render():
    env = one_server(TWO, render_mode="ansi")
    env.reset()
    env.step(0)
    assert "time 10.0: 0 running, 1 waiting, 1 finished" in env.render()
    assert "job 1 wants 3 cpu, 1 memory, 0 gpu for 20.0" in env.render()
