"""What people see: text, pixels, and the episode that `python environment.py` plays."""

import numpy as np

import environment
from schedrl.envs.deeprm import DeepRMEnv
from schedrl.envs.deeprm.render import CELL, EMPTY, PALETTE

JOBS = ([2, 3, 1], [[1, 2], [2, 3], [2, 1]])
TINY = {
    "num_job_slots": 2, "time_horizon": 4, "capacity": (2, 3), "max_job_duration": 4, "max_job_demand": 2,
    "backlog_size": 4, "representation": "compact",
}  # fmt: skip


def played(mode):
    env = DeepRMEnv(workload=JOBS, render_mode=mode, **TINY)
    env.reset(seed=0)
    for action in (0, 2):
        env.step(action)
    return env


def test_text():
    assert played("ansi").render().splitlines() == [
        "time 1",
        "  +0  A.  AA.",
        "  +1  ..  ... and so on",
        "  slot 0: job B, duration 3, demand 2, 3, waited 0",
        "  backlog: 0",
    ]
    assert played(None).render() is None


def test_pixels():
    """Job 0 holds the first cell of the first resource; job 1 fills 3 x 2 cells of the first slot."""
    picture = played("rgb_array").render()
    assert picture.dtype == np.uint8
    assert picture.shape == ((1 + 4 + 2 + 4 + 1) * CELL, (1 + 3 + 2 + 2 + 2 + 2 + 2 + 1 + 1) * CELL, 3)

    def cell(row, column):
        return picture[row * CELL + CELL // 2, column * CELL + CELL // 2]

    assert (cell(1, 1) == PALETTE[0]).all()
    assert (cell(1, 2) == EMPTY).all()
    assert (cell(2, 1) == EMPTY).all()
    for row in range(3):
        assert (cell(1 + row, 6) == PALETTE[1]).all()
        assert (cell(1 + row, 7) == PALETTE[1]).all()
    assert (cell(4, 6) == EMPTY).all()
    second = 1 + 4 + 2  # rows down to the second resource
    assert (cell(second, 1) == PALETTE[0]).all()
    assert (cell(second, 2) == PALETTE[0]).all()
    assert (cell(second, 3) == EMPTY).all()


def test_command_plays_an_episode(capsys):
    assert environment.main(["--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 resources of 10/10 units")
    assert any(line.startswith("decision 1: action") for line in lines)
    assert "Minus the return is the sum of the slowdowns" in lines[-1]
    total = float(lines[-2].split()[-1].rstrip("."))
    assert f"{-total:.2f}" in lines[-1]


def test_command_refuses(capsys):
    assert environment.main(["--capacty", "3"]) == 2
    assert "nearest: --capacity" in capsys.readouterr().err
    for seed, says in (("-3", "at least 0"), ("x", "whole number")):
        assert environment.main(["--seed", seed]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert error.count("\n") == 1
        assert says in error
