"""Output that can't be written: training goes on and says so, a command that only prints has failed."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from schedrl.launch.interrupts import Interrupts
from schedrl.settings import main_guard
from schedrl.settings.output import outlive

TRAIN = ["launcher.py", "--num_envs", "16", "--num_steps", "16", "--batch_size", "64", "--no_eval"]
INSPECT = ["job_distribution.py"]


class Broken:
    """A stream that fails from its first line on."""

    def __init__(self, code):
        self.code = code

    def write(self, text):
        raise OSError(self.code, os.strerror(self.code))

    flush = fileno = isatty = lambda self: False


@pytest.mark.parametrize("code", [errno.EPIPE, errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("outlived", [True, False])
def test_a_stream_that_breaks(code, outlived, monkeypatch, capsys):
    done = []

    @main_guard
    def main(argv=None):
        if outlived:
            outlive()
        print("begin")
        print("more", flush=True)
        done.append(True)

    monkeypatch.setattr(sys, "stdout", Broken(code))
    answer = main([])
    assert done
    errors = capsys.readouterr().err
    if outlived:
        assert (answer, errors.count("\n")) == (0, 1)
        assert f"standard output is lost ({os.strerror(code)}); going on without it" in errors
    elif code == errno.EPIPE:  # | head
        assert (answer, errors) == (0, "")
    else:
        assert (answer, errors) == (1, f"error: can't write standard output: {os.strerror(code)}\n")


def run(arguments, redirected, root, where):
    """Run a command line of the shell and return its exit code and standard error."""
    command = " ".join([sys.executable, *(str(root / arguments[0]), *arguments[1:])])
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} {redirected}"],
        cwd=where,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        ("> /dev/full", 1, "error: can't write standard output: No space left on device\n"),
        ("--help > /dev/full", 1, "error: can't write standard output: No space left on device\n"),
        (">&-", 1, "error: can't write standard output: Bad file descriptor\n"),
        ("2>&- >/dev/null", 0, ""),
        ("| head -n 1 > /dev/null", 0, ""),
    ],
)
def test_a_command_that_only_prints(redirected, code, said, root, tmp_path):
    assert run(INSPECT, redirected, root, tmp_path) == (code, said)


@pytest.mark.slow
@pytest.mark.parametrize("redirected", ["> /dev/full", ">&-", "<&- >&- 2>&-", "| head -n 1 > /dev/null"])
def test_training_goes_on_without_its_output(redirected, root, tmp_path):
    code, errors = run([*TRAIN, "--total_steps", "1024", "--model_dir", "run"], redirected, root, tmp_path)
    assert code == 0
    assert ("standard output is lost" in errors) == ("2>" not in redirected)
    assert len((tmp_path / "run" / "metrics.csv").read_text().splitlines()) == 5
    assert (tmp_path / "run" / "policy.npz").exists()


def test_a_closed_terminal_asks_to_save_once_however_often_it_tells():
    asked = []
    with Interrupts(lambda text: None) as interrupts:
        interrupts.on_stop = lambda: asked.append(True)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGHUP)
    assert asked
    assert interrupts.exit_code == 42


def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(lambda text: None) as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.01)
        assert interrupts.exit_code == 0
    finally:
        signal.signal(signal.SIGHUP, before)
