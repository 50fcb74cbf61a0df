"""Each order of the queue on small instances with the known choice, and its value worked out by hand."""

import math

import pytest

from schedrl.sim.cluster.orders import ORDERS, STATIC, score

NOW = 100.0


def value(
    order, arrival=0.0, estimate=10.0, procs=1.0, priority=0.0, share=0.0, now=NOW, aging=50.0, epoch=0.0
):
    return score(ORDERS[order], now, arrival, estimate, procs, priority, share, aging, epoch)


def first(order, *jobs, **shared):
    """Return which of the jobs comes first; ties go to the one named first."""
    values = [value(order, **job, **shared) for job in jobs]
    return values.index(min(values))


OLD_LONG = {"arrival": 10.0, "estimate": 60.0, "procs": 1.0}
NEW_SHORT = {"arrival": 90.0, "estimate": 10.0, "procs": 8.0}
MIDDLE = {"arrival": 40.0, "estimate": 30.0, "procs": 2.0}
JOBS = (OLD_LONG, NEW_SHORT, MIDDLE)


@pytest.mark.parametrize(
    ("order", "choice"),
    [
        ("fifo", 0),
        ("sjf", 1),  # 60, 10, 30
        ("ljf", 0),
        ("saf", 0),  # areas 60, 80, 60: a tie, which the earlier job wins
        ("laf", 1),
        ("smallest", 0),  # 1, 8, 2
        ("largest", 1),
        ("xf", 2),  # (90 + 60) / 60 = 2.5, (10 + 10) / 10 = 2, (60 + 30) / 30 = 3
        ("wfp3", 2),  # 1.5^3 = 3.4, 1^3 x 8 = 8, 2^3 x 2 = 16
        ("unicep", 2),  # 90 / 60 = 1.5, 10 / (3 x 10) = 0.3, 60 / (1 x 30) = 2
        ("f1", 0),  # 870 log10(s) rules: 870, 1700, 1394
        ("f2", 0),
        ("f3", 0),
        ("f4", 0),
        ("priority", 0),  # waits of 90, 10, 60
    ],
)
def test_the_known_choice(order, choice):
    assert first(order, *JOBS) == choice


def test_no_order_is_without_a_worked_choice():
    cases = test_the_known_choice.pytestmark[0].args[1]
    assert {name for name, _ in cases} | {"drf"} == set(ORDERS), "drf has a test of its own, below"


@pytest.mark.parametrize(
    ("order", "worked"),
    [
        ("f1", 3 * 4 + 870 * 2),
        ("f2", math.sqrt(1000) * 4 + 25600 * 2),
        ("f3", 1000 * 4 + 6860000 * 2),
        ("f4", 1000 * 2 + 530000 * 2),
        ("xf", -(400 + 1000) / 1000),
        ("wfp3", -(0.4**3) * 4),
        ("unicep", -400 / (2 * 1000)),
        ("priority", -1 * (1 + 400 / 50)),
    ],
)
def test_values_worked_by_hand(order, worked):
    found = value(order, arrival=100.0, estimate=1000.0, procs=4.0, now=500.0)
    assert found == pytest.approx(worked, rel=1e-12)


def test_unicep_is_defined_at_one_processor():
    assert value("unicep", procs=1.0) == value("unicep", procs=2.0) == -100 / 10
    assert value("unicep", procs=0.5) == -10


@pytest.mark.parametrize("order", ["f1", "f2", "f3", "f4"])
def test_f_orders_count_arrivals_from_the_epoch_and_are_finite_there(order):
    assert value(order, arrival=1100.0, epoch=1000.0) == value(order, arrival=100.0)
    at, soon, later = (value(order, arrival=a, epoch=1000.0) for a in (1000.0, 1000.05, 1001.0))
    assert math.isfinite(at)
    assert at == soon < later


@pytest.mark.parametrize("order", ORDERS)
def test_times_of_zero_give_numbers(order):
    assert math.isfinite(value(order, estimate=0.0, arrival=0.0, now=0.0))
    assert math.isfinite(value(order, estimate=0.0, arrival=0.0, procs=0.0))


def test_drf_takes_the_user_who_holds_least():
    assert first("drf", {"share": 0.5}, {"share": 0.25}, {"share": 0.25}) == 1


def test_priority_ages_instead_of_starving():
    urgent, patient = {"priority": 3.0, "arrival": 100.0}, {"priority": 1.0, "arrival": 0.0}
    # 3 against 1 + 100 / aging_time: the patient job overtakes once aging_time is below 50
    assert first("priority", urgent, patient, aging=60.0) == 0
    assert first("priority", urgent, patient, aging=40.0) == 1
    # nobody's wait is lost because a trace states no priorities, or strange ones
    assert (
        value("priority", priority=0.0) == value("priority", priority=-2.0) == value("priority", priority=1.0)
    )


@pytest.mark.parametrize("order", ORDERS)
def test_static_orders_are_those_that_waiting_does_not_change(order):
    job = {"arrival": 10.0, "estimate": 60.0, "procs": 3.0}
    changed = value(order, **job) != value(order, **job, now=2 * NOW, share=0.5)
    assert changed == (order not in STATIC)
