"""Job sequences of a generator in steps and units: numbered, apart by family, of the load asked for."""

import json

import numpy as np
import pytest

import environment
from schedrl.envs.deeprm import jobs
from schedrl.envs.deeprm.generated import daily, samples
from schedrl.envs.deeprm.placed import jobs_only
from schedrl.envs.deeprm.settings import DeepRMSettings, chosen
from schedrl.envs.deeprm.vector import DeepRMVectorEnv
from schedrl.envs.workload_choice import generators
from schedrl.settings import UserError
from schedrl.sim.deeprm.sequences import NEVER

GENERATORS = [name for name in generators() if name != "real_trace"]


def settings_of(workload="bursty", **more):
    return DeepRMSettings().replace(workload=workload, **more)


def load_of(sequences, settings):
    work = (sequences.duration[:, :, None] * sequences.demand).sum(axis=(0, 1)) / np.array(
        settings.capacities
    )
    return work / (sequences.count * sequences.steps)


@pytest.mark.parametrize("workload", GENERATORS)
def test_the_load_after_rounding_is_the_one_asked_for(workload):
    settings = settings_of(workload, load=0.8)
    sequences = jobs.sequences_of(settings, 4096)
    parts = [load_of(sequences.rows(slice(i, i + 256)), settings).max() for i in range(0, 4096, 256)]
    error = np.std(parts, ddof=1) / np.sqrt(len(parts))
    assert abs(np.mean(parts) - 0.8) < max(4 * error, 0.012)
    assert (sequences.demand <= 10).all()
    assert (sequences.duration <= 15).all()
    there = sequences.arrival != NEVER
    assert (sequences.duration[there] >= 1).all()
    assert sequences.demand[there].any(axis=1).all()
    assert (np.diff(sequences.arrival, axis=1) >= 0).all()
    assert (np.diff(sequences.arrival, axis=1) == 0).any(), "several jobs arrive in one step"
    assert samples(jobs_only(settings))[0] * 2 >= there.sum(axis=1).max(), "no sequence was cut off"


def test_a_sequence_is_a_pure_function_of_its_number():
    settings = settings_of(load=0.9)
    every = jobs.jobs_of(settings, 3, "train").at(np.arange(600))
    source = jobs.jobs_of(settings, 3, "train")
    for numbers in ([511, 512], [7], [255, 256, 257]):
        for got, wanted in zip(source.at(np.array(numbers)), every.rows(np.array(numbers)), strict=True):
            assert np.array_equal(got, wanted)
    assert [source.next(2)[0].tolist(), source.next(1)[0].tolist()] == [[0, 1], [2]]
    for seed, family in ((4, "train"), (3, "validation"), (3, "test")):
        other = jobs.jobs_of(settings, seed, family).at(np.arange(600))
        same = [np.array_equal(a, b) for a, b in zip(other.arrival, every.arrival, strict=True)]
        assert not any(same)
    with pytest.raises(UserError, match="sequence -1"):
        source.at(np.array([-1]))


def test_training_loads_take_turns_and_a_few_sequences_come_again():
    settings = settings_of("poisson", load=0.5, train_loads=(0.4, 1.2), num_sequences=8)
    train = jobs.jobs_of(settings, 0, "train")
    drawn = train.at(np.arange(16))
    assert np.array_equal(drawn.arrival[:8], drawn.arrival[8:])
    many = jobs.jobs_of(settings.replace(num_sequences=0), 0, "train").at(np.arange(1024))
    assert load_of(many.rows(slice(0, None, 2)), settings).max() == pytest.approx(0.4, rel=0.1)
    assert load_of(many.rows(slice(1, None, 2)), settings).max() == pytest.approx(1.2, rel=0.1)
    test = jobs.sequences_of(settings, 1024)
    assert load_of(test, settings).max() == pytest.approx(0.5, rel=0.1)


def test_without_a_load_the_generators_own_rate_holds():
    slow, fast = (settings_of("poisson", arrival_rate=rate, time_step=30.0) for rate in (2.0, 4.0))
    counts = [(jobs.sequences_of(s, 512).arrival != NEVER).sum() / (512 * 50) for s in (slow, fast)]
    assert counts == pytest.approx([1.0, 2.0], rel=0.05)  # a step is half a minute
    none = jobs.sequences_of(settings_of("poisson", arrival_rate=1e-6), 4)
    assert (none.arrival == NEVER).all()


def test_a_daily_cycle_begins_at_any_hour():
    assert [name for name in GENERATORS if daily(settings_of(name).workload_settings)] == [
        name for name in ("diurnal", "lublin") if name in GENERATORS
    ]
    settings = settings_of("diurnal", load=0.5, time_step=1.0, durations="constant:5")
    counts = (jobs.sequences_of(settings, 4096).arrival != NEVER).sum(axis=1).reshape(16, 256).mean(axis=1)
    assert counts.max() > 3 * counts.min(), "blocks of an hour, each at another time of the day"


def test_settings_lie_where_they_belong():
    settings = settings_of(load=0.9, burst_interval=200, capacity=20)
    own = settings.workload_settings
    assert (own.burst_interval, own.burst_factor, own.capacity) == (200.0, 4.0, (40.0, 160.0, 10.0))
    assert (settings.capacities, settings.max_job_demand, settings.arrival_rate) == ((20, 20), 20, 0.7)
    assert settings.replace(burst_factor=8).workload_settings.burst_interval == 200
    laid = settings.replace(workload_settings={"burst_factor": 8, "capacity": (80.0, 320.0, 20.0)})
    assert (laid.workload_settings.burst_interval, laid.workload_settings.capacity[0]) == (200.0, 80.0)
    assert settings.replace(workload="poisson").workload_settings.to_dict()["durations"] == own.durations
    assert settings.replace(workload="deeprm", load=None) == DeepRMSettings(capacity=20)
    assert DeepRMSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    assert environment.make(**settings.to_dict()).settings == settings
    assert hash(settings) == hash(settings.replace())
    assert (DeepRMSettings().replace(workload="uniform").distribution) == "uniform"
    assert "bursty jobs for 50 steps at load 90%" in settings.summary()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"workload": "burst"}, "nearest: bursty"),
        ({"workload": "bursty", "burst_intervall": 3}, "'burst_intervall'; nearest: burst_interval"),
        ({"burst_interval": 3}, "unknown setting 'burst_interval'"),
        ({"workload": "bursty", "burst_interval": 3}, "must be above burst_duration"),
        ({"workload": "bursty", "load": 0.5, "arrival_rate": 3}, "load and arrival_rate are both given"),
        ({"workload": "bursty", "workload_settings": {"load": 0.5}}, "which counts rounded jobs"),
        ({"workload": "bursty", "workload_settings": 3}, "give names and values of bursty"),
        ({"workload": "bursty", "distribution": "uniform"}, "of workload deeprm, not of bursty"),
        ({"workload": "bursty", "max_job_demand": 5}, "every job that fits the capacity is admitted"),
        ({"workload": "bursty", "time_step": 0}, "time_step is 0.0; it must be above 0"),
        ({"workload": "bursty", "train_loads": (0.0,)}, "every load must be above 0"),
        ({"workload": "uniform", "distribution": "bimodal"}, "contradict"),
        ({"time_step": 3}, "time_step has no effect on workload deeprm"),
        ({"long_jobs": "reject"}, "long_jobs has no effect on workload deeprm"),
        ({"workload_settings": {"burst_factor": 3}}, "workload_settings has no effect"),
    ],
)  # fmt: skip
def test_what_is_not_the_workloads_is_refused(wrong, says):
    with pytest.raises(UserError, match=says):
        DeepRMSettings().replace(**wrong)


def test_a_preset_is_about_deeprms_own_jobs():
    with pytest.raises(UserError, match="arrival_rate 0.38 is of workload deeprm, not of poisson; give load"):
        chosen(None, "deeprm-70", {"workload": "poisson"})
    steady = chosen(None, "deeprm-steady", {}, "poisson")
    assert (steady.workload, steady.load, len(steady.train_loads)) == ("poisson", 0.6, 4)


def test_make_takes_a_name():
    env = environment.make(workload="bursty", load=0.9, burst_interval=200, family="test")
    assert env.settings.workload_settings.burst_interval == 200
    env.reset(seed=5)
    wanted = jobs.sequences_of(env.settings, 1, 5)
    table = env.jobs()
    first = table["arrival_time"] == 0
    assert table["duration"][first].tolist() == wanted.duration[0][wanted.arrival[0] == 0].tolist()
    batch = environment.make_vec(num_envs=3, workload="bursty", load=0.9, seed=2)
    batch.reset()
    saved = batch.get_state()
    other = batch.factory()(num_envs=3, seed=2)
    other.reset()
    assert np.array_equal(other.get_state()["ints"], saved["ints"])


def test_episodes_go_to_their_end_in_every_termination():
    for termination in ("all_done", "no_new_job", "continuing"):
        settings = settings_of(load=1.2, termination=termination, sequence_length=20, episode_max_length=60)
        env = DeepRMVectorEnv(settings, 4)
        obs, _ = env.reset(seed=0)
        ended = 0
        for _ in range(400):
            obs, _, terminated, truncated, _ = env.step(obs["action_mask"].argmax(axis=1))
            ended += int((terminated | truncated).sum())
        assert ended > 4


def test_it_is_said_what_was_rounded():
    text = "\n".join(jobs.described(settings_of(load=0.9)))
    assert "bursty: a step is 19 s; 10 units stand for 40 cores of cpu" in text
    assert "jobs kept" in text
    assert "memory 90.0% after rounding" in text
    assert jobs.described(DeepRMSettings()) == []
    rejected = "\n".join(jobs.described(settings_of(load=0.9, long_jobs="reject", num_resources=4)))
    assert "rejected (longer than max_job_duration)" in rejected
    assert "nothing demands the other 1 of num_resources 4" in rejected
