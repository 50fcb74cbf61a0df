"""The benchmarks of learned placement: from a run of the launcher to rows that are judged."""

import json

import pytest

import launcher
from benchmarks import elastic, other_clusters, placement
from benchmarks.__main__ import main
from schedrl.evaluation.cluster import composing

TINY = "--use_tf_function False --num_envs 16 --num_steps 16 --batch_size 256 --num_epochs 1 --num_jobs 20"
TINY += " --validation_sequences 2 --total_steps 512 --no_eval"
FEW = ["sjf+best_fit+conservative", "fifo+first_fit+skip", "sjf+best_fit+skip"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Train for a moment, in this process."""

    def train(folder, flags, seed, decisions):
        if not (folder / "policy.npz").exists():
            words = [*flags, *TINY.split(), "--seed", str(seed), "--model_dir", str(folder)]
            assert launcher.main(words) == 0

    monkeypatch.setattr(composing, "composed_rules", lambda: FEW)
    for module in (placement, other_clusters, elastic):
        monkeypatch.setattr(module, "train", train)


@pytest.mark.slow
def test_placement_judges_each_seed_against_the_best_rules(tmp_path, capsys):
    words = "--jobs poisson-0.9,two-kinds-0.9 --seeds 0 --num_sequences 12 --validation_sequences 4"
    words += f" --out {tmp_path}"
    assert main(["placement", *words.split(), "--wait_limits", "1"]) == 1
    shown = capsys.readouterr().out
    assert "0 of 2 rows pass; below hold: 0" in shown
    rows = json.loads((tmp_path / "placement.json").read_text())
    judged = [row for row in rows if row["passes"] is not None]
    assert [row["jobs"] for row in judged] == ["poisson-0.9", "two-kinds-0.9"]
    for row in judged:
        assert row["composed"] in FEW
        assert row["excess"] > row["composed_excess"]
        assert row["composed_high"] > 0
    limited = [row for row in rows if "wait_limit" in row["policy"]]
    assert any(row["excess"] != free["excess"] for row, free in zip(limited, judged, strict=True))
    # Rules are chosen once, and trained policies used again.
    assert main(["placement", *words.split(), "--continuing"]) == 0
    assert "0 of 0 rows pass" in capsys.readouterr().out


def test_shares_are_held_against_full_ones(tmp_path, capsys):
    words = f"--algorithms ppo --seeds 0 --num_sequences 12 --out {tmp_path}"
    assert main(["elastic", *words.split()]) in (0, 1)
    (row,) = json.loads((tmp_path / "elastic.json").read_text())
    assert 0.25 <= row["mean_share"] < 1
    assert row["full_cost"] != row["cost"]
    assert row["full_excess"] != row["excess"]
    assert "of 1 rows pass" in capsys.readouterr().out


def test_one_policy_on_other_clusters(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(other_clusters, "JOBS_PER_SERVER", 5)
    words = f"--seeds 0 --servers 2,5 --loads 0.9,1.2 --num_sequences 12 --out {tmp_path}"
    assert main(["other_clusters", *words.split()]) in (0, 1)
    rows = json.loads((tmp_path / "other_clusters.json").read_text())
    assert [(row["servers"], row["load"]) for row in rows] == [(2, 0.9), (2, 1.2), (5, 0.9), (5, 1.2)]
    assert [row["passes"] is None for row in rows] == [True, False, False, False]
    assert f"of {3} rows pass" in capsys.readouterr().out
