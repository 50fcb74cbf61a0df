"""The benchmarks of whole runs on many machines, with tiny budgets; and the published table beside them."""

import re

import pytest

from benchmarks import backfilling, rlscheduler
from benchmarks.__main__ import main

RATIO = r"\d+\.\dx \(\d+\.\d \.\. \d+\.\d\)"


def test_cluster_prints_growth_ratios_and_memory(capsys):
    tiny = ["--num_jobs", "2000", "--num_machines", "10", "--reference_jobs", "100", "--rounds", "1"]
    assert main(["cluster", *tiny]) in (0, 1)
    shown = capsys.readouterr().out
    assert len(re.findall(r"s +\d+\.\d+x +(?:met|MISSED)", shown)) == 24  # conservative's too
    assert len(re.findall(RATIO + r" +(?:met|MISSED)", shown)) == 8
    assert shown.count(" us") == 22
    assert len(re.findall(r"(?:ms +){3}\d+\.\d\d +(?:met|MISSED)", re.sub(r"[\d.]+ ms", "ms", shown))) == 4
    assert re.search(r"Peak memory of this process: \d+\.\d\d GB \((met|MISSED)", shown)


@pytest.fixture(scope="module")
def windows(shared_dir):
    trace = str(shared_dir / "traces" / "lublin_256.swf")
    jobs = backfilling.load(backfilling.BackfillingBenchmark(trace=trace))
    return [jobs.take(slice(s, s + rlscheduler.LENGTH)) for s in rlscheduler.starts(len(jobs))]


def mean(values):
    return sum(values) / len(values)


@pytest.mark.parametrize("discipline", backfilling.DISCIPLINES)
def test_sjf_and_f1_are_far_below_fcfs_on_the_published_windows(windows, discipline):
    found = {
        name: mean([backfilling.measure(w, order, discipline, 0.0) for w in windows])
        for name, order in backfilling.NAMES.items()
    }
    assert backfilling.far_below(found)
    if discipline == "strict":  # without backfilling first come, first served leaves nothing open
        assert found["fcfs"] == pytest.approx(rlscheduler.PUBLISHED["fcfs"][0], abs=0.005)


@pytest.mark.parametrize("with_backfilling", [False, True])
def test_the_published_values_come_out_of_the_published_rules_of_play(windows, with_backfilling):
    for name, published in rlscheduler.PUBLISHED.items():
        found = backfilling.replayed(windows, name, with_backfilling, False, False)
        assert found == pytest.approx(published[with_backfilling], abs=0.005), name


def test_orders_that_are_not_far_below_fcfs_are_exit_code_1(capsys, monkeypatch):
    monkeypatch.setattr(backfilling, "replayed", lambda *given: 1.0)
    words = ["backfilling", "--num_jobs", "2500", "--whole", "False"]
    assert main(words) == 0
    assert "everywhere: yes" in capsys.readouterr().out
    monkeypatch.setattr(backfilling, "FAR_BELOW", 0.0)
    assert main(words) == 1
    assert "everywhere: NO" in capsys.readouterr().out
