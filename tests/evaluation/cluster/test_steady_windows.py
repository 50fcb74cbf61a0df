"""Where arrivals never stop, the jobs of the middle of each sequence count, for rules and policies alike."""

import numpy as np

from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.evaluation.cluster import holding
from schedrl.evaluation.cluster.composing import best_composed, composed_rules
from schedrl.evaluation.cluster.metrics import bounded_slowdowns, waits
from schedrl.evaluation.cluster.sequences import evaluate, mean_of_means, simulated

SETTINGS = SimpleClusterSettings(action="job_machine", termination="continuing", num_jobs=50, load=1.0)
RULE = "sjf+best_fit+skip"


def test_the_middle_counts():
    schedules = simulated(RULE, SETTINGS, 6, 0, "test")
    middle = [bounded_slowdowns(s, 10.0, bounds=True)[10:40] for s in schedules]
    replay = evaluate({}, SETTINGS, num_sequences=6, rules=[RULE])
    (entry,) = replay.entries
    np.testing.assert_allclose(entry.sums / entry.counts, np.mean(middle, axis=1))
    assert entry.counts.tolist() == [30.0] * 6
    assert mean_of_means(schedules, SETTINGS) == np.mean(middle)
    longest = max(np.nanmax(waits(s, censored=True)[10:40]) for s in schedules)
    assert entry.measures["starvation"]["max_wait"] == longest
    assert entry.measures["bounded_slowdown"]["n"] <= 180
    assert entry.measures["nb_jobs"] == 300
    assert any("from 20% to 80% count" in note for note in replay.notes)
    whole = evaluate({}, SETTINGS.replace(termination="all_done"), num_sequences=6, rules=[RULE])
    assert whole.entries[0].counts.tolist() == [50.0] * 6
    assert whole.notes == ()


def test_the_best_composed_rule_is_the_best_of_all():
    settings = SETTINGS.replace(termination="all_done", num_jobs=30)
    assert len(composed_rules()) == 16 * 11 * 4
    found = best_composed(settings, num_sequences=3)
    means = [rule.mean for rule in found]
    assert means == sorted(means)
    for rule in ("sjf+best_fit+easy", "fifo+first_fit+strict", found[0].rule):
        mean = mean_of_means(simulated(rule, settings, 3, 0, "validation"), settings)
        assert found[0].mean <= mean + 1e-12
    assert found[0].mean == mean


def test_hold_is_tuned_on_what_counts():
    numbers = holding.tuned(["hold"], SETTINGS)["hold"]["hold"]
    tuned = mean_of_means(simulated("hold", SETTINGS, 50, 0, "validation", hold=numbers), SETTINGS)
    easy = mean_of_means(simulated("sjf+best_fit+easy", SETTINGS, 50, 0, "validation"), SETTINGS)
    assert tuned <= easy
