"""What stands for an estimate, and what is said where true run times are used."""

import numpy as np
import pytest

from schedrl.launch.replay.estimating import moments, with_own_medians
from schedrl.settings import UserError
from schedrl.workload import Workload
from schedrl.workload.estimates import class_medians, classes, read_model, told, with_model
from schedrl.workload.generators import settings_of
from schedrl.workload.writers import write_trace


def jobs(count=200, seed=0, estimate=None, **more):
    rng = np.random.default_rng(seed)
    return Workload(
        arrival=np.sort(rng.uniform(0, 1000, count)),
        duration=np.round(rng.lognormal(3, 1, count), 1),
        demand=rng.integers(1, 9, (count, 1)).astype(float),
        resources=("cpu",),
        time_unit="s",
        user=[f"u{number}" for number in rng.integers(5, size=count)],
        estimate=estimate,
        **more,
    )


@pytest.mark.parametrize("lacking", [1, 3, 199, 200])
def test_how_many_have_none_is_said_and_what_follows(lacking):
    estimate = np.full(200, 500.0)
    estimate[:lacking] = np.nan
    (line,) = told(jobs(estimate=estimate)).lines()
    one = lacking == 1
    have, their = ("has", "its") if one else ("have", "their")
    assert line.startswith(f"{lacking} of 200 jobs {have} no estimate: {their} true run time is used")
    assert "upper bound" in line
    assert ("favoured" in line) == (lacking < 200)


def test_nothing_is_said_of_users_estimates_and_exact_ones_are_named():
    assert not list(told(jobs(estimate=np.full(200, 500.0))).lines())
    (line,) = told(jobs(estimate=jobs().duration)).lines()
    assert "equal the true run times" in line
    assert "upper bound" in line


@pytest.mark.parametrize("model", ["class-median", "limit:60", "noise:0.5", "true"])
def test_a_model_says_what_it_replaces(model):
    estimate = np.where(np.arange(200) < 80, 500.0, np.nan)
    (line,) = told(jobs(estimate=estimate), read_model(model)).lines()
    assert line.startswith(f"--estimates {model}: ")
    assert "it replaces the estimates that 80 jobs had (120 of 200 jobs had none)" in line
    assert ("upper bound" in line) == (model == "true")


def test_models():
    some = jobs()
    assert (np.asarray(with_model(some, read_model("limit:60")).estimate) == 60).all()
    assert (np.asarray(with_model(some, read_model("true")).estimate) == some.duration).all()
    one, same, other = (
        np.asarray(with_model(some, read_model("noise:0.5"), seed).estimate) for seed in (0, 0, 1)
    )
    assert (one == same).all()
    assert (one != other).any()
    assert np.std(np.log(one / some.duration)) == pytest.approx(0.5, rel=0.15)
    minutes = Workload([0, 1], [1, 90], [[1], [1]], ("cpu",), time_unit="min")
    assert np.asarray(with_model(minutes, read_model("limit:3600")).estimate).tolist() == [60, 60]
    assert told(minutes, read_model("limit:3600")).longer == 1


@pytest.mark.parametrize(
    "text", ["", "median", "limit", "limit:0", "limit:-5", "limit:nan", "limit:inf", "noise", "noise:-1",
             "noise:nan", "noise:11", "true:1", "class-median:2"]
)  # fmt: skip
def test_a_model_that_makes_no_sense_is_refused_in_one_line(text):
    with pytest.raises(UserError) as refused:
        read_model(text)
    assert repr(text) in str(refused.value)
    assert "\n" not in str(refused.value)


def naive(workload, known, job):
    """Return the median as the docs say it, job by job."""
    size = np.ceil(np.log2(np.asarray(workload.instances)[:, None] * workload.demand)).ravel()
    user = np.asarray(workload.user)
    others = known & (np.arange(len(workload)) != job)
    for same in ((size == size[job]) & (user == user[job]), size == size[job], np.ones(len(size), bool)):
        if (same & others).any():
            return np.median(workload.duration[same & others])
    return 3600.0


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 1.0])
def test_medians_of_classes_as_job_by_job(share):
    for seed in range(5):
        some = jobs(80, seed, instances=np.random.default_rng(seed).integers(1, 4, 80))
        known = np.random.default_rng(seed).random(80) < share
        expected = [naive(some, known, job) for job in range(80)]
        np.testing.assert_allclose(class_medians(some, known), expected)
    assert (classes(some)[0] == 0).all()


def test_no_run_time_is_used_before_its_job_has_finished():
    """Two worlds that differ only in what has not finished by t give the same estimates up to t."""
    rng = np.random.default_rng(1)
    for seed in range(20):
        one = jobs(150, seed)
        wait = rng.exponential(50, 150)
        t = float(rng.uniform(200, 900))
        later = one.arrival + wait + one.duration >= t
        assert later[one.arrival < t].any()
        other = Workload(
            one.arrival, np.where(later, one.duration + rng.exponential(30, 150), one.duration), one.demand,
            one.resources, "s", user=one.user,
        )  # fmt: skip

        def finishes(workload, now, wait=wait):
            finish = workload.arrival + wait + workload.duration
            return np.where(finish < now, finish, np.nan)

        found = [np.asarray(with_own_medians(world, finishes).estimate) for world in (one, other)]
        assert (found[0] == found[1])[one.arrival <= t].all()
        assert (found[0] != 3600)[moments(150)[2] :].all()


def test_training_on_a_trace_learns_medians_from_the_training_part_alone(tmp_path):
    one = jobs(300, estimate=np.full(300, 900.0))
    changed = np.asarray(one.duration).copy()
    changed[180:] *= 3
    other = Workload(one.arrival, changed, one.demand, one.resources, "s", user=one.user)
    found = []
    for name, world in (("one", one), ("other", other)):
        write_trace(world, tmp_path / f"{name}.csv")
        settings = settings_of("real_trace").from_dict(
            {"trace_file": str(tmp_path / f"{name}.csv"), "estimates": "class-median"}
        )
        found.append({family: np.asarray(settings.part(family).estimate) for family in ("train", "test")})
    assert (found[0]["test"] == found[1]["test"]).all()
    ended = one.arrival + one.duration <= one.arrival[180]
    expected = [naive(one, ended & (np.arange(300) < 180), job) for job in range(300)]
    np.testing.assert_allclose(found[0]["test"], expected[240:], rtol=1e-6)
    np.testing.assert_allclose(found[0]["train"], expected[:180], rtol=1e-6)
    assert settings.told().lacking == 300
    assert "no job had an estimate" in next(iter(settings.told().lines()))
