"""What generators draw against theory. A tolerance is 3 standard errors, or a p-value above 0.001.

Seeds are fixed, so that a failure is a change of the code and not of luck.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from schedrl.workload.generators import GENERATORS, generate, settings_of
from schedrl.workload.generators.clocks import DAY

MANY = 100_000
P_VALUE = 0.001


def draw(name, num_jobs=MANY, seed=11, **settings):
    settings = settings_of(name).from_dict(settings)
    return settings, generate(settings, num_jobs, seed)


def exponential(values, mean):
    return stats.kstest(values, "expon", args=(0, mean)).pvalue > P_VALUE


# -- arrivals ------------------------------------------------------------------------------------------------


def test_poisson_gaps_are_exponential_with_the_mean_that_the_rate_gives():
    _, jobs = draw("poisson")
    gaps = np.diff(jobs.arrival)
    assert abs(gaps.mean() - 12) <= 3 * 12 / np.sqrt(len(gaps))  # 5 jobs a minute
    assert exponential(gaps, 12)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) <= 3 / np.sqrt(len(gaps))


@pytest.mark.parametrize("name", ["bursty", "diurnal"])
def test_a_rate_that_varies_has_the_mean_that_was_asked_for(name):
    _, jobs = draw(name, arrival_rate=10)
    days = int(jobs.arrival[-1] // DAY)
    counts = np.bincount((jobs.arrival // DAY).astype(int))[:days]
    assert abs(counts.mean() - 14_400) <= 3 * counts.std(ddof=1) / np.sqrt(days)


def history(settings, num_jobs, seed=11):
    """Times of the changes of state, and which are bursts: the clock on the stream that `generate` uses."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0))).spawn(5)[1]
    clock = settings.clock(rng)
    end = clock.real(np.array([num_jobs / settings.rate()]))[0]
    return clock.history(end)


@pytest.mark.parametrize(
    ("changes", "share", "length"),
    [({}, 0.2, 60), ({"burst_gaps": 20}, 0.2, 240), ({"burst_interval": 600}, 0.1, 60)],
    ids=str,
)
def test_bursts_take_their_share_of_time_and_last_as_long_as_set(changes, share, length):
    settings = settings_of("bursty").from_dict(changes)
    times, burst = history(settings, MANY)
    stays = np.diff(times)[:-1]
    bursts, quiets = stays[burst[:-1]], stays[~burst[:-1]]
    assert abs(bursts.mean() - length) <= 3 * length / np.sqrt(len(bursts))
    assert exponential(bursts, length)
    assert exponential(quiets, length * (1 - share) / share)
    found = bursts.sum() / stays.sum()
    assert abs(found - share) <= 3 * share * (1 - share) * np.sqrt(2 / len(bursts))  # delta method


def test_it_starts_in_the_steady_state():
    settings = settings_of("bursty")()
    starts = [history(settings, 1, seed)[1][0] for seed in range(1000)]
    assert abs(np.mean(starts) - 0.2) <= 3 * np.sqrt(0.2 * 0.8 / 1000)


def test_the_rate_in_a_burst_is_the_factor_times_that_of_a_quiet_time():
    settings, jobs = draw("bursty", burst_factor=4)
    times, burst = history(settings, len(jobs))
    in_burst = burst[np.searchsorted(times, jobs.arrival[:-2000]) - 1]
    inside = times <= jobs.arrival[-2000]
    stays = np.diff(times[inside])
    rates = [(in_burst == state).sum() / stays[burst[: len(stays)] == state].sum() for state in (False, True)]
    error = 4 * np.sqrt(1 / in_burst.sum() + 1 / (~in_burst).sum())
    assert abs(rates[1] / rates[0] - 4) <= 3 * error


def test_counts_of_bursty_arrivals_are_as_dispersed_as_those_of_the_process():
    settings, jobs = draw("bursty", 400_000)
    window = 60.0
    counts = np.bincount((jobs.arrival // window).astype(int))[:-1]
    (quiet, burst), share = np.array(settings.state_rates()) * settings.rate(), 0.2
    turnover = sum(1 / stay for stay in settings.stays())
    decay = turnover * window - 1 + np.exp(-turnover * window)  # Fischer and Meier-Hellstern, section 2
    variance = settings.rate() * window + 2 * (burst - quiet) ** 2 * share * (1 - share) * decay / turnover**2
    batches = counts[: len(counts) // 50 * 50].reshape(50, -1).var(1)
    assert abs(batches.mean() - variance) <= 3 * batches.std(ddof=1) / np.sqrt(50)
    assert variance > 1.5 * settings.rate() * window


def whole_days(jobs):
    """Time of day of each job, in hours, of the days that are complete."""
    return jobs.arrival[jobs.arrival < jobs.arrival[-1] // DAY * DAY] % DAY / 3600


@pytest.mark.parametrize(("hour", "amplitude"), [(14.0, 3.0), (2.5, 1.4)])
def test_the_day_has_its_peak_and_amplitude(hour, amplitude):
    settings, jobs = draw("diurnal", peak_hour=hour, amplitude=amplitude)
    angles = whole_days(jobs) * np.pi / 12
    length = abs(np.exp(1j * angles).mean())
    found = np.angle(np.exp(1j * angles).mean()) * 12 / np.pi % 24
    k = settings.concentration()
    ratio = _resultant(k)
    assert abs(found - hour) <= 3 * 12 / np.pi / np.sqrt(len(angles) * k * ratio)
    # von Mises: the maximum-likelihood k has I1(k) / I0(k) = length, and its variance is known.
    k_found = brentq(lambda k: _resultant(k) - length, 1e-9, 100)
    error = 1 / np.sqrt(len(angles) * (1 - ratio**2 - ratio / k))
    slope = amplitude * (1 - ratio)  # of exp(k) / I0(k)
    assert abs(np.exp(k_found) / np.i0(k_found) - amplitude) <= 3 * slope * error
    counts, edges = np.histogram(angles, 96, (0, 2 * np.pi))
    expected = np.diff(stats.vonmises.cdf(edges, k, loc=hour * np.pi / 12)) * len(angles)
    assert stats.chisquare(counts, expected).pvalue > P_VALUE


def _resultant(k):
    from scipy.special import i0e, i1e

    return i1e(k) / i0e(k)


def test_without_amplitude_the_day_is_even():
    _, jobs = draw("diurnal", amplitude=1)
    assert exponential(np.diff(jobs.arrival), 12)


# -- durations and sizes -------------------------------------------------------------------------------------


def tail_index(values, low, high):
    """Maximum-likelihood index of a Pareto law between `low` and `high`, and its standard error."""
    ratio, mean = np.log(high / low), np.log(values / low).mean()
    found = brentq(lambda a: 1 / a - mean - ratio / np.expm1(a * ratio), 1e-3, 50)
    information = 1 / found**2 - ratio**2 * np.exp(found * ratio) / np.expm1(found * ratio) ** 2
    return found, 1 / np.sqrt(len(values) * information)


@pytest.mark.parametrize("alpha", [1.5, 0.8])
def test_the_tail_of_durations_has_its_index(alpha):
    _, jobs = draw("heavy_tail", alpha=alpha)
    assert 1 <= jobs.duration.min() < 1.001
    assert 900 < jobs.duration.max() <= 1024
    found, error = tail_index(jobs.duration, 1, 1024)
    assert abs(found - alpha) <= 3 * error


def test_the_tail_of_demands_has_its_index():
    _, jobs = draw("heavy_tail", tail="demand", max_size=500)
    found, error = tail_index(jobs.demand[:, 0] / 8 * 500, 1, 500)
    assert abs(found - 1.5) <= 3 * error
    assert (jobs.demand.max(0) <= (8, 32, 2)).all()
    assert np.allclose(jobs.demand[:, 1] / jobs.demand[:, 0], 4)


def test_pareto_and_lognormal_durations_of_the_cluster():
    _, jobs = draw("poisson", durations="pareto")
    found, error = tail_index(jobs.duration, 10, 20_000)
    assert abs(found - 1.1) <= 3 * error
    _, jobs = draw("poisson")
    assert (jobs.duration.min(), jobs.duration.max()) >= (1, 1000)
    assert jobs.duration.max() <= 7200
    inside = np.log(jobs.duration[(jobs.duration > 1) & (jobs.duration < 7200)])
    assert stats.kstest(inside, "norm", args=(np.log(60), 1.2)).pvalue > P_VALUE


def test_cluster_mix_is_as_described():
    _, jobs = draw("poisson")
    cores, memory, gpus = jobs.demand.T
    wants = gpus > 0
    plain = np.array([(cores[~wants] == n).sum() for n in (1, 2, 4, 8)])
    with_gpu = np.array([(cores[wants] == n).sum() for n in (1, 2, 4, 8)])
    assert stats.chisquare(plain, np.array([0.45, 0.3, 0.18, 0.07]) * plain.sum()).pvalue > P_VALUE
    assert stats.chisquare(with_gpu[:3], np.array([0.45, 0.3, 0.25]) * wants.sum()).pvalue > P_VALUE
    assert with_gpu[3] == 0
    counts = [(gpus == n).sum() for n in (0, 1, 2)]
    assert stats.chisquare(counts, np.array([0.7, 0.21, 0.09]) * len(jobs)).pvalue > P_VALUE
    assert (memory.min(), memory.max()) == (0.5, 32)
    inside = (memory > 0.5) & (memory < 32) & (cores == 1)
    assert stats.kstest(np.log(memory[inside]), "norm", args=(np.log(3), 0.7)).pvalue > P_VALUE


@pytest.mark.parametrize("spearman", [0.7, 0.0, -0.3])
@pytest.mark.parametrize(
    "sizes", [None, ("pareto:1.1:1:64", "uniform:1:9", "exponential:3:100")], ids=["usual", "mixed"]
)
def test_correlated_demands_have_their_rank_correlation_and_their_laws(spearman, sizes):
    given = {} if sizes is None else {"sizes": sizes}
    settings, jobs = draw("correlated", corr_coeff=spearman, **given)
    parts = jobs.demand.reshape(40, -1, 3)
    found = np.array([stats.spearmanr(part).statistic[[0, 0, 1], [1, 2, 2]] for part in parts])
    assert (np.abs(found.mean(0) - spearman) <= 3 * found.std(0, ddof=1) / np.sqrt(40)).all()
    grid = np.linspace(0.05, 0.95, 19)
    for law, values in zip(settings.size_law().laws, jobs.demand.T, strict=True):
        counts = np.histogram(values, [-np.inf, *law.at(grid), np.inf])[0]
        assert stats.chisquare(counts).pvalue > P_VALUE


# -- load ----------------------------------------------------------------------------------------------------

LOADED = [
    ("poisson", {}),
    ("poisson", {"durations": "pareto", "sizes": "uniform"}),
    ("poisson", {"durations": "exponential:100:300", "sizes": ("whole:1:4", "constant:2", "uniform:0:1")}),
    ("heavy_tail", {}),
    ("heavy_tail", {"tail": "demand"}),
    ("bursty", {"burst_gaps": 20}),
    ("diurnal", {}),
    ("correlated", {}),
    ("correlated", {"sizes": "uniform", "corr_coeff": -0.4}),
    ("lublin", {}),
    ("lublin", {"job_classes": "all", "num_nodes": 256}),
]


@pytest.mark.parametrize(("name", "changes"), LOADED, ids=str)
def test_the_load_is_met_within_three_standard_errors(name, changes):
    settings, jobs = draw(name, load=0.9, **changes)
    expected = settings.expected_load()
    assert expected.max() == pytest.approx(0.9, rel=1e-12)
    # Batches of whole days, so that neither bursts nor the daily cycle tie one to the next.
    days = jobs.arrival[-1] // DAY
    batch = DAY * np.ceil(days / 60) if days >= 8 else jobs.arrival[-1] / 40
    index = (jobs.arrival // batch).astype(int)
    work = [np.bincount(index, jobs.duration * demand)[: index[-1]] for demand in jobs.demand.T]
    load = np.array(work) / batch / np.array(settings.capacity)[:, None]
    error = load.std(1, ddof=1) / np.sqrt(load.shape[1])
    limit = 3 if load.shape[1] > 30 else stats.t.isf(0.00135, load.shape[1] - 1)  # few days, wider tails
    assert (np.abs(load.mean(1) - expected) <= limit * error).all()


@pytest.mark.parametrize("num_jobs", [2, 200, 20_000])
@pytest.mark.parametrize(("name", "changes"), LOADED, ids=str)
def test_an_exact_load_is_hit(name, changes, num_jobs):
    settings, jobs = draw(name, num_jobs, load=1.1, exact_load=True, **changes)
    assert abs(jobs.load(settings.capacity).max() - 1.1) <= 1e-9
    assert len(jobs) == num_jobs
    assert jobs.arrival[0] >= 0


def test_an_exact_load_keeps_the_hours_of_the_day():
    _, jobs = draw("diurnal", load=0.5, exact_load=True, durations="pareto:1.01:10:1000000")
    angles = whole_days(jobs) * np.pi / 12
    assert abs(np.angle(np.exp(1j * angles).mean()) * 12 / np.pi % 24 - 14) < 0.2


def test_every_generator_with_a_load_is_in_the_table():
    with_load = {name for name in GENERATORS if hasattr(settings_of(name), "exact_load")} - {"real_trace"}
    assert with_load == {name for name, _ in LOADED}
