"""Lublin and Feitelson's model against its published parameters and jobs of the authors' own program."""

import numpy as np
import pytest
from scipy import stats

from schedrl.settings import UserError
from schedrl.workload.generators import generate, settings_of
from schedrl.workload.generators.clocks import DAY, DailyClock
from schedrl.workload.generators.lublin_model import (
    ALL,
    BATCH,
    CLASSES,
    INTERACTIVE,
    LONGEST_GAP,
    LONGEST_RUN,
)

MANY = 100_000
SINGLE = {"interactive": INTERACTIVE, "batch": BATCH, "all": ALL}


def draw(num_jobs=MANY, seed=7, **settings):
    return generate(settings_of("lublin")(**settings), num_jobs, seed)


def within(found, expected, error):
    return abs(found - expected) <= 3 * error


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("num_nodes", [128, 100])
def test_sizes_are_those_of_the_model(name, num_nodes):
    nodes = draw(job_classes=name, num_nodes=num_nodes).demand[:, 0].astype(int)
    chances = SINGLE[name].size_chances(num_nodes)
    assert chances.sum() == pytest.approx(1)
    counts = np.bincount(nodes, minlength=num_nodes + 1)
    assert not counts[chances == 0].any()
    often = chances * MANY > 5
    assert (
        stats.chisquare(counts[often], chances[often] / chances[often].sum() * counts[often].sum()).pvalue
        > 0.001
    )


@pytest.mark.parametrize(
    ("name", "serial", "power_of_two"),
    [("interactive", 0.1541, 0.625), ("batch", 0.2927, 0.6686), ("all", 0.244, 0.576)],
)
def test_published_shares_of_serial_and_power_of_two_jobs(name, serial, power_of_two):
    nodes = draw(job_classes=name).demand[:, 0]
    # A few of the others fall on a serial job or a power of two by themselves, when 2^x is rounded.
    by_chance = SINGLE[name]._replace(serial=0.0, power_of_two=0.0).size_chances(128)
    others = 1 - serial - power_of_two
    assert within((nodes == 1).mean(), serial + others * by_chance[1], np.sqrt(serial / MANY))
    powers = by_chance[2 ** np.arange(1, 8)].sum()
    found = ((nodes > 1) & (np.log2(nodes) % 1 == 0)).mean()
    assert within(found, power_of_two + others * powers, np.sqrt(power_of_two / MANY))


@pytest.mark.parametrize("name", SINGLE)
def test_run_times_are_those_of_the_model(name):
    model, jobs = SINGLE[name], draw(job_classes=name)
    nodes, log_seconds = jobs.demand[:, 0], np.log(jobs.duration)
    assert log_seconds.max() <= LONGEST_RUN
    chance = model.short_chance(nodes)
    below, all_below = (
        chance * stats.gamma.cdf(x, model.short.shape, scale=model.short.scale)
        + (1 - chance) * stats.gamma.cdf(x, model.long.shape, scale=model.long.scale)
        for x in (log_seconds, LONGEST_RUN)
    )
    assert stats.kstest(below / all_below, "uniform").pvalue > 0.001
    mean = model.mean_duration(nodes)
    assert within((jobs.duration - mean).mean(), 0, (jobs.duration - mean).std() / np.sqrt(MANY))
    work = jobs.duration * nodes
    assert within(work.mean(), model.mean_work(128), work.std() / np.sqrt(MANY))
    assert stats.spearmanr(nodes, jobs.duration).statistic > 0  # larger jobs run longer


# As published: chance of a short run time of a serial job, the two gammas of run times, the gamma of gaps.
PUBLISHED = {
    "interactive": (0.9156 - 0.0118, (3.8351, 0.6605), (7.073, 0.6856), (6.5510 * 0.9797, 0.6621)),
    "batch": (0.6986 - 0.003, (6.57, 0.823), (639.1, 0.0156), (6.0415 * 1.0519, 0.8531)),
    "all": (0.78 - 0.0054, (4.2, 0.94), (312, 0.03), (10.2303 * 1.0225, 0.4871)),
}


def below(limit, shape, scale):
    """The chance that a gamma is below the limit, and its mean then."""
    chance = stats.gamma.cdf(limit, shape, scale=scale)
    return chance, stats.gamma.ppf((np.arange(20_000) + 0.5) / 20_000 * chance, shape, scale=scale).mean()


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_moments_of_logarithms(name):
    jobs = draw(job_classes=name)
    chance, *runs, gap = PUBLISHED[name]
    (short, short_mean), (long, long_mean) = (below(12, *law) for law in runs)
    shares = np.array([chance * short, (1 - chance) * long])
    log_run = shares @ [short_mean, long_mean] / shares.sum()
    found = np.log(jobs.duration[jobs.demand[:, 0] == 1])
    assert within(found.mean(), log_run, found.std() / np.sqrt(len(found)))
    found = np.log(np.diff(even(SINGLE[name], jobs.arrival)))
    assert within(found.mean(), below(13, *gap)[1], found.std() / np.sqrt(len(found)))


def even(model, arrival):
    """The times at which jobs would have come without a daily cycle."""
    clock = DailyClock(model.daily_rates())
    grid = np.linspace(0, DAY, 48 * 100 + 1)
    midnight = arrival // DAY * DAY
    return midnight + np.interp(arrival - midnight, clock.real(grid), grid)


@pytest.mark.parametrize("name", SINGLE)
def test_gaps_are_those_of_the_model_once_the_daily_cycle_is_taken_away(name):
    model, jobs = SINGLE[name], draw(job_classes=name)
    gaps = np.diff(even(model, jobs.arrival))
    law = model.day_gap()
    below = stats.gamma.cdf(np.log(gaps), law.shape, scale=law.scale) / law.share_below(LONGEST_GAP)
    assert stats.kstest(below, "uniform").pvalue > 0.001
    assert within(gaps.mean(), model.mean_gap(), gaps.std() / np.sqrt(len(gaps)))


def hours(arrival):
    return np.bincount((arrival % DAY // 3600).astype(int), minlength=24)


@pytest.mark.parametrize("name", SINGLE)
def test_the_day_has_the_published_shape(name):
    jobs = draw(job_classes=name)
    expected = SINGLE[name].daily_rates().reshape(24, 2).sum(1)
    # Gaps of many hours tie the hours of a day together, so the errors are taken from runs of days.
    days = (jobs.arrival // DAY).astype(int)
    runs = np.array(
        [
            hours(part)
            for part in np.split(jobs.arrival, np.searchsorted(days, np.linspace(0, days[-1], 31)[1:-1]))
        ]
    )
    share = runs / runs.sum(1, keepdims=True)
    error = share.std(0, ddof=1) / np.sqrt(len(share))
    assert (np.abs(share.mean(0) - expected / expected.sum()) <= 4 * error).all()  # 24 comparisons


def test_both_classes_come_side_by_side_at_their_own_rates():
    jobs = draw(job_classes="both")
    batch = jobs.extra["queue"] == 1
    share = 1 / BATCH.mean_gap() / sum(1 / model.mean_gap() for model in CLASSES["both"])
    parts = batch.reshape(50, -1).mean(1)
    assert within(batch.mean(), share, parts.std(ddof=1) / np.sqrt(50))
    assert (jobs.demand[batch, 0] == 1).mean() == pytest.approx(0.2927, abs=0.01)
    assert (jobs.demand[~batch, 0] == 1).mean() == pytest.approx(0.1541, abs=0.01)
    assert np.median(jobs.duration[batch]) > 5 * np.median(jobs.duration[~batch])


@pytest.mark.parametrize(("num_jobs", "seed"), [(1, 0), (3, 1), (50, 2), (5000, 3)])
def test_the_first_jobs_of_both_classes_are_the_first(num_jobs, seed):
    assert draw(num_jobs, seed).same_as(draw(20_000, seed).take(slice(0, num_jobs)))


def test_a_rate_of_ones_own():
    jobs = draw(arrival_rate=2.0)
    assert len(jobs) / jobs.arrival[-1] * 60 == pytest.approx(2, rel=0.1)
    assert jobs.resources[0].name == "cpu"
    assert jobs.load()[0] == pytest.approx(
        settings_of("lublin")(arrival_rate=2.0).expected_load()[0], rel=0.15
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_nodes": 16}, "at least 32"),
        ({"arrival_rate": 0}, "above 0"),
        ({"load": 0}, "at least 1e-06"),
        ({"exact_load": True}, "give load"),
        ({"job_classes": "serial"}, "interactive"),
        ({"estimates": "wrong"}, "round"),
    ],
    ids=str,
)
def test_refused(changes, message):
    with pytest.raises(UserError, match=message):
        draw(**changes)


# -- jobs of the authors' program ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(shared_dir):
    path = shared_dir / "traces" / "lublin_256.swf"
    if not path.exists():
        pytest.skip("the sample of the authors' program is not here")
    rows = np.loadtxt(path, comments=";")
    return rows[:, 1], rows[:, 3], rows[:, 4]


def test_sizes_of_the_program(published):
    nodes = published[2].astype(int)
    chances = ALL.size_chances(256)
    often = chances * len(nodes) > 5
    counts = np.bincount(nodes, minlength=257)
    observed, expected = (np.append(x[often], x[~often].sum()) for x in (counts, chances * len(nodes)))
    assert stats.chisquare(observed, expected).pvalue > 0.001
    ours = draw(job_classes="all", num_nodes=256).demand[:, 0]
    assert stats.ks_2samp(nodes, ours).pvalue > 0.001
    assert within(nodes.mean(), ours.mean(), ours.std() * np.sqrt(1 / len(nodes) + 1 / MANY))


def test_run_times_of_the_program(published):
    _, seconds, nodes = published
    jobs = draw(job_classes="all", num_nodes=256)
    ours, our_nodes = np.floor(jobs.duration), jobs.demand[:, 0]  # the program cuts to whole seconds
    for low, high in ((1, 1), (2, 8), (9, 64), (65, 256)):
        theirs = seconds[(nodes >= low) & (nodes <= high)]
        same = ours[(our_nodes >= low) & (our_nodes <= high)]
        assert stats.ks_2samp(theirs, same).pvalue > 0.001
    assert within(seconds.mean(), ours.mean(), ours.std() * np.sqrt(1 / len(seconds) + 1 / MANY))


def test_arrivals_of_the_program(published):
    arrival = published[0]
    ours = draw(job_classes="all", num_nodes=256).arrival
    theirs, same = (np.diff(even(ALL, times)) for times in (arrival, ours))
    # Above 10 seconds, where cutting to whole ones does not matter.
    assert stats.ks_2samp(theirs[theirs > 10], same[same > 10]).pvalue > 0.001
    assert within(theirs.mean(), same.mean(), same.std() * np.sqrt(1 / len(theirs) + 1 / MANY))
    share, our_share = (hours(times) / len(times) for times in (arrival, ours))
    assert np.abs(share - our_share).max() < 0.015
