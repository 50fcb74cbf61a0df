"""Learning curves of the report: smoothing, common grids, bands, and when a level is passed."""

import numpy as np
import pytest

from schedrl.evaluation.comparison_report.curves import (
    EPISODES,
    MANY_SEEDS,
    Curve,
    band,
    on_grid,
    read_curve,
    trailing_mean,
)


def curve(slowdown, episodes=EPISODES, start=0.0, step=10.0):
    x = start + step * np.arange(len(slowdown))
    return Curve(x, x / 2, np.asarray(slowdown, float), -np.asarray(slowdown, float), episodes)


def test_trailing_mean_against_a_naive_loop():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, 80)
    episodes = [rng.normal(3, 1, count) for count in counts]
    values = np.array([part.mean() if len(part) else np.nan for part in episodes])
    means, valid = trailing_mean(values, counts.astype(float), 12)
    for i in range(len(counts)):
        taken, first = 0, i + 1
        while taken < 12 and first > 0:
            first -= 1
            taken += counts[first]
        assert valid[i] == (taken >= 12)
        if valid[i]:
            assert means[i] == pytest.approx(np.concatenate(episodes[first : i + 1]).mean())


def test_reading_leaves_out_what_too_few_episodes_are_behind(tmp_path):
    path = tmp_path / "metrics.csv"
    rows = [f"{100 * i},{20 * i},{i},{-i},{5 - i / 100 if i > 1 else 'nan'}" for i in range(1, 201)]
    path.write_text("decisions,episodes,seconds,episode_return,slowdown\n" + "\n".join(rows) + "\n")
    found = read_curve(path)
    assert found.episodes == EPISODES
    assert (found.decisions[0], found.seconds[0]) == (2_500, 25)
    assert found.slowdown[-1] == pytest.approx(np.mean([5 - i / 100 for i in range(176, 201)]))
    path.write_text("decisions,episodes,seconds,episode_return,slowdown\n" + "\n".join(rows[:9]) + "\n")
    assert read_curve(path).episodes == 60


def test_a_level_is_passed_where_the_curve_stays_below_to_the_end():
    assert curve([9, 4, 6, 4, 3]).passes(5) == (30.0, 15.0)
    assert curve([3, 2, 1]).passes(5) == (0.0, 0.0)
    assert curve([9, 4, 3, 6]).passes(5) is None, "it was below, but not to the end"
    assert curve([9, 5, 5]).passes(5) is None, "level is not below"
    assert curve([9, 4, 3], episodes=EPISODES - 1).passes(5) is None, "chance would pass it"
    assert curve([]).passes(5) is None


def test_a_common_grid_has_what_all_seeds_have():
    grid, values = on_grid([curve([0, 1, 2, 3]), curve([0, 10, 20], start=10)], "decisions", "slowdown")
    assert (grid[0], grid[-1], values.shape) == (10, 30, (2, len(grid)))
    assert values[:, -1].tolist() == [3, 20]
    assert np.allclose(values[0], grid / 10)
    seconds, rewards = on_grid([curve([0, 1, 2, 3])], "seconds", "reward")
    assert (seconds[-1], rewards[0, -1]) == (15, -3)
    apart, _ = on_grid([curve([0, 1]), curve([0, 1], start=1_000)], "decisions", "slowdown")
    assert not len(apart)
    assert not len(on_grid([], "decisions", "slowdown")[0])


def test_the_band_is_the_range_of_few_seeds_and_an_interval_of_many():
    rng = np.random.default_rng(0)
    assert band(rng.normal(size=(1, 3))) is None
    few = rng.normal(size=(MANY_SEEDS - 1, 3))
    low, high = band(few)
    assert np.array_equal(low, few.min(axis=0))
    assert np.array_equal(high, few.max(axis=0))
    many = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    low, high = band(many)
    half = 2.776 * np.sqrt(2.5) / np.sqrt(5)  # t(4) = 2.776
    assert (low[0], high[0]) == pytest.approx((3 - half, 3 + half), abs=1e-3)
