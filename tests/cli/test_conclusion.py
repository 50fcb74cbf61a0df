"""The sentence that ends a run claims no more than the table."""

from types import SimpleNamespace

from schedrl.evaluation.comparison import Comparison
from schedrl.evaluation.statistics import Interval
from schedrl.launch.after_training import verdict


def comparison(name, low, high, **more):
    interval = None if low is None else Interval((low + high) / 2, low, high)
    return Comparison("ppo (greedy)", name, -0.1, interval, -0.1, interval, 0.5, **more)


def sentence(*comparisons):
    summaries = {c.baseline: SimpleNamespace(mean=2.0) for c in comparisons}
    summaries["ppo (greedy)"] = SimpleNamespace(mean=1.5)
    run = SimpleNamespace(label="ppo (greedy)")
    evaluation = SimpleNamespace(run=lambda *_: run, summaries=summaries, comparisons=comparisons)
    return verdict(evaluation, "ppo")


def test_each_kind_of_verdict_is_told_apart():
    text = sentence(
        comparison("sjf", -0.2, -0.1),
        comparison("packer", -0.2, -0.1, bound=True),
        comparison("tetris", -0.1, 0.1),
        comparison("fifo", 0.1, 0.2),
        comparison("defer", None, None),
        comparison("tsl", -0.2, -0.1, few=True),
    )
    assert "it beats sjf by 10.0% [10.0% .. 20.0%]" in text
    assert "left jobs undone, than packer" in text
    assert "ties with tetris" in text
    assert "loses to fifo" in text
    assert "no claim against: defer 2.00" in text
    assert "too few sequences for a verdict on: tsl 2.00" in text
    assert text.count("it beats") == 1


def test_alone():
    assert sentence() == "ppo (greedy) has a mean slowdown of 1.50: it was alone."
