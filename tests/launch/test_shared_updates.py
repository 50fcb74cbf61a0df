"""Two workers with half a batch each take the step that one process takes with the whole batch."""

import numpy as np
import pytest
from shared_updates import (
    ALL,
    ALONE,
    LIMIT,
    ROWS,
    STEPS,
    UNEVEN,
    UPDATES,
    ppo,
    results,
    run_two,
    uneven,
)

from schedrl.launch.distributed.meeting import free_ports


@pytest.fixture(scope="module")
def both(tmp_path_factory, root):
    return run_two(tmp_path_factory.mktemp("updates"), free_ports(2), root)


@pytest.fixture(scope="module")
def whole():
    return results(ALONE, ALL)


@pytest.mark.parametrize("name", UPDATES)
def test_same_step_as_one_process_with_both_batches(name, both, whole):
    start = UPDATES[name](ALONE, slice(0, ROWS), 1e-30)[0].weights.numpy()
    step = np.linalg.norm(whole[name] - start)
    assert step > 0
    for found in both:
        # The step is the rate times the clipped gradient, whose norm before stands in the statistics.
        assert np.linalg.norm(found[name] - whole[name]) <= 1e-5 * step
        statistics = whole[f"{name}/statistics"]
        np.testing.assert_allclose(found[f"{name}/statistics"], statistics, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(both[0][name], both[1][name])


def test_all_or_none_stop_by_the_kl(both, whole):
    alone = [ppo(ALONE, slice(i * ROWS, (i + 1) * ROWS), 1e9, LIMIT)[1]["gradient_steps"] for i in range(2)]
    assert alone[0] != alone[1], "both halves stop alike by themselves: the test shows nothing"
    for found in both:
        np.testing.assert_allclose(found["kl_stop"], whole["kl_stop"], rtol=1e-4)
    assert 1 <= whole["kl_stop"][0] <= STEPS
    np.testing.assert_array_equal(both[0]["kl_weights"], both[1]["kl_weights"])


@pytest.mark.parametrize("i", range(len(UNEVEN)))
def test_shares_of_different_sizes_count_by_their_size(i, both):
    whole = uneven(ALONE, ALL)
    found = [{k.partition("/")[2]: v for k, v in one.items() if k.startswith(f"uneven{i}/")} for one in both]
    advantages = np.concatenate([found[0]["advantage"], found[1]["advantage"]])
    np.testing.assert_allclose(advantages, whole["advantage"], rtol=1e-5, atol=1e-6)
    for one in found:
        for name in ("weights", "mean", "var", "returns"):
            np.testing.assert_allclose(one[name], whole[name], rtol=1e-5, atol=1e-5)
        assert one["decisions"] == 2 * ROWS
        assert one["metric"] == 0.5
        np.testing.assert_array_equal(one["any"], [True, False])
    assert found[0]["parts"] == found[1]["parts"]


def test_what_counts_as_losing_another_worker():
    from schedrl.launch.distributed.worker import lost_contact
    from schedrl.learning.tf_setup import tensorflow

    errors = tensorflow().errors
    assert "lost contact" in lost_contact(errors.UnavailableError(None, None, "Connection reset by peer"))
    assert lost_contact(errors.ResourceExhaustedError(None, None, "out of memory")) is None
    assert lost_contact(ValueError("ours")) is None


def test_all_start_with_the_chiefs_weights(both):
    from shared_updates import alike

    np.testing.assert_array_equal(both[0]["alike"], both[1]["alike"])
    np.testing.assert_array_equal(both[0]["alike"], alike(ALONE))
