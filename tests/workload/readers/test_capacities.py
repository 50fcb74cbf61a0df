"""Capacities that a file states: taken where plain, questioned where jobs contradict them, never guessed."""

import csv
import json

import numpy as np
import pytest

import job_distribution
from schedrl.workload import Workload
from schedrl.workload.constraints import Predecessors
from schedrl.workload.readers import read_trace
from schedrl.workload.writers import write_trace


def swf(header, *rows):
    lines = [
        f"{i} {10 * i} {wait} {run} {cpu} -1 -1 {cpu} -1 -1 1 1 1 1 1 1 -1 -1" for i, (wait, run, cpu) in rows
    ]
    return header + "\n".join(lines) + "\n"


FOUR = list(enumerate([(0, 100, 4), (0, 100, 4), (0, 5, 2), (0, 5, 1)]))


@pytest.mark.parametrize(
    ("header", "capacity", "said"),
    [
        ("; MaxProcs: 16\n", 16, ""),
        ("; MaxProcs: 1,024\n; MaxNodes: 64\n", 1024, ""),
        ("; MaxProcs: 16 (8 of them old)\n", 16, ""),
        ("; MaxNodes: 64\n", 64, "MaxNodes, 64, is taken for processors"),
        ("; MaxProcs: 338 or 400\n", None, "MaxProcs is '338 or 400', no plain number"),
        ("; MaxProcs: unknown\n", None, "no plain number"),
        ("; MaxProcs: 0\n", None, "no plain number"),
        ("; MaxProcs: " + "9" * 400 + "\n", None, "no plain number"),
        ("", None, ""),
        ("; MaxProcs: 3\n", 3, "there are 3 processors of cpu, but 2 jobs asked for up to 4"),
        ("; MaxProcs: 6\n", 6, "by its own starts up to 10 were in use at once"),
    ],
)
def test_the_header_of_swf(read_text, header, capacity, said):
    jobs, rejected = read_text(swf(header, *FOUR))
    assert (None if np.isnan(jobs.capacity[0]) else jobs.capacity[0]) == capacity
    assert len(rejected.remarks) == bool(said)
    assert not said or said in rejected.remarks[0]


@pytest.mark.parametrize("header", ["; MaxProcs: unknown\n", "; MaxProcs: 3\n", ""])
def test_a_capacity_by_hand_wins(header, tmp_path, capsys):
    path = tmp_path / "log.swf"
    path.write_text(swf(header, *FOUR))
    assert job_distribution.main(["inspect", str(path), "--capacity", "cpu=100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["capacity"] == {"cpu": 100.0}
    assert job_distribution.main(["inspect", str(path), "--capacity", "cpu=0"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "'cpu=0'; write cpu=AMOUNT, a finite number above 0" in error


def test_batsim_hosts_that_are_no_number(read_text):
    held = {
        "nb_res": "many",
        "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "p"}],
        "profiles": {"p": {"type": "delay", "delay": 5}},
    }
    jobs, rejected = read_text(json.dumps(held), "batsim")
    assert np.isnan(jobs.capacity[0])
    assert "nb_res is no number of hosts" in rejected.remarks[0]


def test_inspect_names_the_jobs_that_can_never_run_and_leaves_them_out_of_the_load(tmp_path, capsys):
    path = tmp_path / "log.swf"
    path.write_text(swf("; MaxProcs: 3\n", *FOUR))
    assert job_distribution.main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "2 jobs ask for more than all of that, can never run, and are not in the load: 0, 1\n" in shown
    alone = read_trace(path)[0].take(slice(2, 4)).load()[0]
    assert f"load {alone:.1%} of 3 processors" in shown
    assert job_distribution.main(["inspect", str(path), "--json"]) == 0
    held = json.loads(capsys.readouterr().out)
    assert (held["exceed_capacity"], held["first_to_exceed"]) == (2, ["0", "1"])


def test_convert_counts_jobs_that_are_no_lines(tmp_path, capsys):
    path = tmp_path / "log.swf"
    path.write_text(swf("; MaxProcs: 3\n;\n;\n;\n", *FOUR))
    assert job_distribution.main(["convert", str(path), str(tmp_path / "out.csv"), "--fit", "reject"]) == 0
    assert "  number 1: too_large (job 0, cpu 4 of 3)" in capsys.readouterr().out


@pytest.mark.parametrize("stated", ["[0.0]", "[-1]", "[1e999]", "[-Infinity]"])
def test_our_own_file_with_a_capacity_that_makes_no_sense(tmp_path, capsys, stated):
    path = tmp_path / "jobs.csv"
    write_trace(Workload([0.0, 1.0], [2.0, 2.0], [[1.0], [1.0]], resources=["cpu"], capacity=[16.0]), path)
    text = path.read_text()
    path.write_text(text.replace('"capacity": [16.0]', f'"capacity": {stated}'))
    assert path.read_text() != text
    jobs, rejected = read_trace(path)
    assert np.isnan(jobs.capacity[0])
    assert "which can't be, so it is not known; give --capacity cpu=" in rejected.remarks[0]
    assert job_distribution.main(["inspect", str(path), "--capacity", "cpu=100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["capacity"] == {"cpu": 100.0}


def test_converted_for_spreadsheets_only_where_asked(tmp_path, capsys):
    path, plain, safe = (tmp_path / name for name in ("jobs.csv", "plain.csv", "safe.csv"))
    ids = ["=1+1", "a", "-2"]
    jobs = Workload(
        [0.0, 1.0, 2.0],
        [1.0] * 3,
        [[1.0]] * 3,
        resources=["cpu"],
        id=ids,
        user=["@x", "y", "y"],
        extra={"note": np.array(["+cmd", "", "z"], object), "score": np.array([-1.0, 2.0, 3.0])},
        predecessors=Predecessors.named(
            np.array(ids, object), np.array([1]), np.array(["=1+1"], object), np.zeros(3)
        ),
    )
    write_trace(jobs, path)
    assert job_distribution.main(["convert", str(path), str(plain)]) == 0
    assert read_trace(plain, strict=True)[0].same_as(jobs)
    assert job_distribution.main(["convert", str(path), str(safe), "--safe_csv"]) == 0
    found = read_trace(safe, strict=True)[0]
    assert found.id.tolist() == ["'=1+1", "a", "-2"]
    assert found.user.tolist() == ["'@x", "y", "y"]
    assert found.extra["note"].tolist() == ["'+cmd", "", "z"]
    assert found.extra["score"].tolist() == [-1.0, 2.0, 3.0]
    assert found.predecessors.waiting.tolist() == [False, True, False]
    cells = {cell for row in csv.reader(safe.read_text().splitlines()[1:]) for cell in row}
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
