"""Laws and estimate models, one by one: means against integrals, draws against distribution functions."""

import numpy as np
import pytest
from scipy import stats

from schedrl.settings import UserError
from schedrl.workload.generators import generate, settings_of
from schedrl.workload.generators.estimates import BY_RANK, POPULAR, estimate_model
from schedrl.workload.generators.laws import LAWS, parse
from schedrl.workload.generators.sizes import ClusterMix, Each, size_law

TEXTS = [
    "lognormal",
    "lognormal:30:0.5:10:50",
    "lognormal:5:0",
    "lognormal:2:1:low=0",
    "pareto",
    "pareto:1:2:64",
    "pareto:0.5:1:1024",
    "exponential",
    "exponential:10:15",
    "uniform:3:9",
    "whole:2:5",
    "constant:7",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_mean_is_the_integral_of_the_inverse(text):
    law = parse("durations", text, LAWS)
    middles = (np.arange(1_000_000) + 0.5) / 1_000_000
    assert law.mean() == pytest.approx(law.at(middles).mean(), rel=2e-4)


@pytest.mark.parametrize("text", TEXTS)
def test_draws_follow_the_law_both_ways(text):
    law = parse("durations", text, LAWS)
    rng = np.random.default_rng(4)
    drawn, turned = law.draw(rng, 50_000), law.from_normal(rng.standard_normal(50_000))
    assert stats.ks_2samp(drawn, law.at(rng.random(50_000))).pvalue > 0.001
    assert stats.ks_2samp(drawn, turned).pvalue > 0.001
    normal = np.linspace(-3, 3, 50)
    assert (np.diff(law.from_normal(normal)) >= 0).all()


def test_values_are_named_or_in_order():
    assert parse("durations", "pareto:1.5:high=99", LAWS) == LAWS["pareto"](1.5, 10, 99)
    assert parse("durations", " lognormal : 5 : high=20 ", LAWS) == LAWS["lognormal"](5, 1.2, 1, 20)


def test_whole_numbers_are_equally_likely():
    counts = np.bincount(LAWS["whole"](2, 5).draw(np.random.default_rng(0), 40_000).astype(int))[2:]
    assert len(counts) == 4
    assert stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize(
    "law", [ClusterMix(), size_law(("uniform",), 3), size_law(("whole:1:2",) * 2, 2, 0.5)]
)
def test_the_mean_demand_is_that_of_many(law):
    drawn = law.draw(np.random.default_rng(2), 200_000)
    assert (np.abs(drawn.mean(0) - law.mean()) <= 3 * drawn.std(0) / np.sqrt(len(drawn))).all()


def test_spearmans_correlation_becomes_pearsons_of_the_normals():
    law = Each(size_law(("uniform:0:1",) * 2, 2).laws, 0.7)
    assert law.normal_correlation(2)[0, 1] == pytest.approx(2 * np.sin(np.pi * 0.7 / 6))


# -- estimates -----------------------------------------------------------------------------------------------


def estimates(text, duration=None):
    duration = np.random.default_rng(0).lognormal(5, 2, 100_000) if duration is None else duration
    return duration, estimate_model(text).draw(np.random.default_rng(1), duration)


def test_exact_and_unknown():
    duration, estimate = estimates("exact")
    assert (estimate == duration).all()
    assert np.isnan(estimates("unknown")[1]).all()


@pytest.mark.parametrize("f", [0, 1, 9])
def test_factor_is_uniform_up_to_f_plus_one(f):
    duration, estimate = estimates(f"factor:{f}")
    ratio = estimate / duration
    assert stats.kstest(ratio, "uniform", args=(1, f)).pvalue > 0.001 if f else (ratio == 1).all()


def test_noise_is_lognormal_and_too_short_half_of_the_time():
    duration, estimate = estimates("noise:0.8")
    assert stats.kstest(np.log(estimate / duration), "norm", args=(0, 0.8)).pvalue > 0.001


def test_round_estimates_are_popular_values_and_never_too_short():
    duration, estimate = estimates("round")
    assert (estimate >= duration).all()
    short = duration <= POPULAR[-1]
    assert set(estimate[short]) == set(POPULAR)
    assert (estimate[~short] % 3600 == 0).all()
    assert (estimate[~short] - duration[~short] < 3600).all()
    share = np.array([(estimates("round", np.ones(100_000))[1] == value).mean() for value in POPULAR])
    assert np.sort(share)[-10:].sum() == pytest.approx(0.835, abs=0.01)
    assert POPULAR[share.argmax()] == 3600


def test_round_estimates_keep_their_popularity_among_those_that_are_long_enough():
    _, all_jobs = estimates("round", np.ones(100_000))
    _, long_jobs = estimates("round", np.full(100_000, 5000.0))
    fits = all_jobs[all_jobs >= 5000]
    values, expected = np.unique(fits, return_counts=True)
    counts = np.array([(long_jobs == value).sum() for value in values])
    assert counts.sum() == len(long_jobs)
    assert stats.chi2_contingency([counts, expected]).pvalue > 0.001


def test_the_tables_of_round_estimates_choose_as_a_search_would():
    class Stream:
        def random(self, size):
            return np.linspace(0, 1, size, endpoint=False)

    rank = np.array([BY_RANK.index(int(value / 60)) for value in POPULAR])
    assert sorted(rank) == list(range(20))
    weight = 0.85**rank
    bounds = np.cumsum(weight / weight.sum())[:-1]
    expected = POPULAR[np.searchsorted(bounds, Stream().random(200_000), side="right")]
    assert (estimate_model("round").draw(Stream(), np.ones(200_000)) == expected).all()


def test_estimates_reach_the_workload():
    settings = settings_of("poisson")(estimates="noise")
    jobs = generate(settings, 1000)
    assert 0.4 < (jobs.estimate > jobs.duration).mean() < 0.6


def test_a_law_that_is_refused_names_its_own_parameters():
    with pytest.raises(UserError, match="write factor:f"):
        estimate_model("factor:2:3")
