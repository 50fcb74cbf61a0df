"""No verdict from no jobs, from sequences without jobs, or from one sequence; NaN reaches nobody."""

import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from outcomes import make_outcome, random_outcome

from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.evaluation.cluster.replay import Entry, Replay
from schedrl.evaluation.cluster.sequences import conclusion
from schedrl.evaluation.comparison import MIN_SEQUENCES, Evaluation
from schedrl.evaluation.evaluate import Run
from schedrl.heuristics import tuning
from schedrl.launch import validation
from schedrl.launch.after_training import verdict
from schedrl.settings import UserError
from schedrl.sim.deeprm.outcome import JobStatus

WORDS = ("beats", "ties", "tie", "better", "worse", "best", "exact", "loses", "nan")


def says_nothing(text):
    words = text.lower().replace(",", " ").replace(".", " ").replace(":", " ").replace(";", " ").split()
    assert not set(words) & set(WORDS), text


def evaluation(with_jobs, empty):
    """Return two runs of which one is clearly better, on sequences of which some are empty."""
    runs = []
    for name, mode, stretch in (("ppo", "greedy", 0.1), ("sjf", "rule", 5.0)):
        full = random_outcome(1, max(with_jobs, 1), 6, stretch)
        rows = []
        for x in range(with_jobs):
            columns = (full.arrival[x], full.finish[x], full.duration[x])
            rows.append([(*map(int, job), JobStatus.FINISHED) for job in zip(*columns, strict=True)])
        nobody = [(0, None, 0, JobStatus.ABSENT)]
        outcome = make_outcome(rows + [nobody] * empty, 200)
        runs.append(Run(name, mode, 0, "legal", outcome))
    return Evaluation(tuple(runs), ("sjf",))


@pytest.mark.parametrize(("with_jobs", "empty"), [(0, 1), (0, 60), (1, 0), (1, 59), (MIN_SEQUENCES - 1, 60)])
def test_too_little_evidence_gives_no_verdict(with_jobs, empty, tmp_path):
    found = evaluation(with_jobs, empty)
    assert found.with_jobs == with_jobs
    assert [c.verdict for c in found.comparisons] == ["too few sequences"]
    says_nothing(verdict(found, "ppo"))
    shown = io.StringIO()
    found.print(shown)
    says_nothing(shown.getvalue().replace("below 0 = better", ""))
    assert "sequences have jobs, fewer than" in shown.getvalue() or "no job came" in shown.getvalue()
    found.to_csv(tmp_path / "rows.csv")
    assert "nan" not in (tmp_path / "rows.csv").read_text().lower()
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 2
    found.to_json(tmp_path / "all.json")
    assert "NaN" not in (tmp_path / "all.json").read_text()


@pytest.mark.parametrize("empty", [0, 60])
def test_enough_evidence_gives_one_whatever_stands_empty_beside(empty):
    found = evaluation(MIN_SEQUENCES, empty)
    assert [c.verdict for c in found.comparisons] == ["better"]
    assert "it beats sjf" in verdict(found, "ppo")


def entry(label, counts, mean, learned=False):
    counts = np.array(counts, float)
    undone = {"unfinished": 0, "failed": 0, "rejected": 0, "nb_jobs": int(counts.sum())}
    measures = undone | {"starvation": {"max_wait": 0.0}, "window": (0, 1), "wait": {"p95": None}}
    heat = SimpleNamespace(edges=np.array([0.0, 1.0]))
    return Entry(label, measures, counts * mean, counts, np.zeros(0), heat, "", 0.0, learned)


@pytest.mark.parametrize("counts", [[0] * 40, [5] + [0] * 39, [5] * 9 + [0] * 31])
def test_sequences_of_clusters_without_jobs_are_no_evidence(counts):
    replay = Replay((entry("sjf", counts, 3.0), entry("ppo (greedy)", counts, 2.0, True)), sequences=True)
    assert not replay.sure
    assert not replay.differences()
    says_nothing(conclusion(replay, "ppo (greedy)"))
    warned = "\n".join(replay.warnings())
    assert ("nothing was measured" in warned) == (sum(counts) == 0)
    assert ("nobody ever waits" in warned) == (sum(counts) > 0)


def test_ten_of_them_are():
    counts = [5] * 10 + [0] * 30
    replay = Replay((entry("sjf", counts, 3.0), entry("ppo (greedy)", counts, 2.0, True)), sequences=True)
    assert replay.sure
    assert "it beats sjf" in conclusion(replay, "ppo (greedy)")


def test_tuning_without_jobs_is_refused():
    settings = DeepRMSettings().replace(arrival_rate=1e-6, sequence_length=2)
    with pytest.raises(UserError, match="no job comes in them"):
        tuning.tune("sjf_hold", settings)


def test_validation_without_jobs_is_an_error_before_training():
    algorithm = SimpleNamespace(validate_every=100, total_steps=1000, validation_sequences=5)
    settings = DeepRMSettings().replace(arrival_rate=1e-6, sequence_length=2)
    plan = SimpleNamespace(algorithm=algorithm, environment=settings)
    with pytest.raises(UserError, match="no job comes in the 5 validation sequences"):
        validation.selection_of(plan, print)
    plan.environment = SimpleClusterSettings()
    assert validation.selection_of(plan, print) is not None
