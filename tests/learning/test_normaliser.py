"""Running statistics: case 19, sharing over leading axes, frozen in evaluation."""

import numpy as np

from schedrl.learning.normaliser import Normaliser, normalise

TRAIN = np.array([[0, 0], [2, 10], [4, 20]], np.float32)
EVAL = np.array([[2, 10], [6, 30]], np.float32)


def test_case_19():
    normaliser = Normaliser({"x": (2,)})
    normaliser.update({"x": TRAIN})
    np.testing.assert_allclose(normaliser.mean["x"], [2, 10])
    np.testing.assert_allclose(normaliser.var["x"], [2.666666667, 66.666666667], rtol=1e-9)
    before = {name: value.copy() for name, value in normaliser.state().items()}
    result = normalise(EVAL, *normaliser.scale()["x"])
    np.testing.assert_allclose(result, [[0, 0], [2.44949, 2.44949]], atol=1e-5)
    for name, value in normaliser.state().items():
        np.testing.assert_array_equal(value, before[name])


def test_before_any_data_it_changes_nothing_and_it_clips():
    scale = Normaliser({"x": (2,)}).scale()["x"]
    np.testing.assert_allclose(normalise(EVAL, *scale), np.clip(EVAL, -10, 10), rtol=1e-6)


def test_batches_merge_to_the_statistics_of_all():
    rng = np.random.default_rng(0)
    data = {
        "queue": rng.normal(3, 2, (90, 4, 3)).astype(np.float32),
        "backlog": rng.normal(-1, 5, (90, 2)).astype(np.float32),
    }
    normaliser = Normaliser({"queue": (4, 3), "backlog": (2,)})
    for part in np.split(np.arange(90), [7, 50]):
        normaliser.update({name: leaf[part] for name, leaf in data.items()} | {"action_mask": None})
    # Every slot is scaled alike: statistics are shared over all axes but the last.
    np.testing.assert_allclose(normaliser.mean["queue"], data["queue"].mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(normaliser.var["queue"], data["queue"].var((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(normaliser.var["backlog"], data["backlog"].var(0), rtol=1e-5)
    assert normaliser.count == 90


def test_large_offsets_keep_their_precision():
    data = (1e6 + np.arange(1000, dtype=np.float64)[:, None]).astype(np.float32)
    normaliser = Normaliser({"x": (1,)})
    normaliser.update({"x": data})
    np.testing.assert_allclose(normaliser.var["x"], data.astype(np.float64).var(0), rtol=1e-4)


def test_state_survives_saving():
    normaliser, other = Normaliser({"x": (2,)}), Normaliser({"x": (2,)})
    normaliser.update({"x": TRAIN})
    other.load_state(normaliser.state())
    normaliser.update({"x": EVAL})
    other.update({"x": EVAL})
    np.testing.assert_array_equal(normaliser.var["x"], other.var["x"])


def test_merged_statistics_equal_those_of_all_observations():
    rng = np.random.default_rng(0)
    shapes = {"queue": (3, 2), "x": (4,), "clock": ()}
    parts, whole = [Normaliser(shapes) for _ in range(3)], Normaliser(shapes)
    for part, size in zip(parts, (5, 20, 0), strict=True):
        if size:
            batch = {name: rng.normal(size, 1 + size, (size, *shape)) for name, shape in shapes.items()}
            part.update(batch)
            whole.update(batch)
    merged = Normaliser(shapes)
    merged.load_merged(np.stack([part.vector() for part in parts]))
    assert merged.count == 25
    for name in shapes:
        np.testing.assert_allclose(merged.mean[name], whole.mean[name])
        np.testing.assert_allclose(merged.var[name], whole.var[name])
        assert merged.mean[name].shape == whole.mean[name].shape


def test_a_single_ones_statistics_are_taken_over_exactly():
    one, other = Normaliser({"x": (4,)}), Normaliser({"x": (4,)})
    one.update({"x": np.random.default_rng(1).normal(3, 5, (100, 4))})
    other.load_merged(one.vector()[None])
    np.testing.assert_array_equal(other.vector(), one.vector())
    other.load_merged(Normaliser({"x": (4,)}).vector()[None])  # nothing seen: nothing changes
    np.testing.assert_array_equal(other.vector(), one.vector())
