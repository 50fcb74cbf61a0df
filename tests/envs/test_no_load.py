"""Jobs that no load can be made of: one line that says why."""

import json
from pathlib import Path

import launcher

CASE = Path(__file__).parent / "cases" / "59"


def test_case_59_jobs_that_take_no_time_are_no_load(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["--env", "simple_cluster", "--trace", str(CASE / "no-time.csv"), "--load", "0.9"]
    code = launcher.main([*command, "--algo", "ppo"])
    error = capsys.readouterr().err
    assert code == 2
    assert code in json.loads((CASE / "expected.json").read_text())["expected"]["exit"]
    assert "take no time, so they have no load; give load none" in error
    assert error.count("\n") == 1
