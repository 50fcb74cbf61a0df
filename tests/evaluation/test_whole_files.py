"""What commands write appears whole or not at all: on a full disk, after a kill, and where something is."""

import os
import resource
import signal

import numpy as np
import pytest
from matplotlib.figure import Figure

from schedrl.evaluation import table
from schedrl.evaluation.comparison_report.contents import Heading, Text
from schedrl.evaluation.comparison_report.html import write_html
from schedrl.evaluation.comparison_report.pdf import write_pdf
from schedrl.evaluation.jobs_csv import write_jobs
from schedrl.settings import UserError, save_picture
from schedrl.workload.types import Resource, Workload
from schedrl.workload.writers import write_trace
from tests.evaluation.outcomes import random_outcome

ROOM = 500  # bytes that a file may have on the full disk; what is written here has more
BEFORE = b"what was there"
ROWS = [{"name": f"row {n}", "value": n / 7} for n in range(200)]
PAGE = [Heading("jobs"), *(Text("many words " * 20) for _ in range(10))]
JOBS = Workload(
    arrival=np.arange(300.0), duration=np.ones(300), demand=np.ones((300, 1)), resources=(Resource("cpu"),)
)


def draw(path):
    figure = Figure()
    figure.subplots().plot(range(10))
    save_picture(figure, path)


WRITERS = {
    "rows.csv": lambda path: table.write_csv(path, ROWS),
    "rows.json": lambda path: table.write_json(path, ROWS),
    "jobs.csv": lambda path: write_jobs(path, {"sjf": random_outcome(1, 40)}),
    "page.html": lambda path: write_html(path, "title", PAGE),
    "page.pdf": lambda path: write_pdf(path, "title", PAGE),
    "picture.png": draw,
    "picture.pdf": draw,
    "trace.csv": lambda path: write_trace(JOBS, path),
    "trace.csv.gz": lambda path: write_trace(JOBS, path),
}


@pytest.fixture(params=WRITERS)
def writer(request, tmp_path):
    path = tmp_path / "out" / request.param
    path.parent.mkdir()
    return path, WRITERS[request.param]


@pytest.fixture
def full_disk():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_leaves_what_was_there(there, writer, full_disk):
    path, write = writer
    if there:
        path.write_bytes(BEFORE)
    full_disk()
    with pytest.raises((OSError, UserError)):
        write(path)
    assert [found.read_bytes() for found in path.parent.iterdir()] == [BEFORE] * there


def test_a_kill_leaves_what_was_there(writer):
    path, write = writer
    path.write_bytes(BEFORE)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # ends the process in the middle of a write
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))
        write(path)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGXFSZ
    assert path.read_bytes() == BEFORE
    write(path)
    assert path.stat().st_size > ROOM
    assert list(path.parent.iterdir()) == [path], "the next writer clears what the kill has left"


def test_a_pipe_or_a_device_is_not_replaced(writer):
    path, write = writer
    os.mkfifo(path)
    with pytest.raises(UserError, match="is a pipe"):
        write(path)
    assert path.is_fifo()


def test_a_link_stays_one(writer):
    path, write = writer
    goal = path.parent.parent / "goal"
    path.symlink_to(goal)
    write(path)
    assert path.is_symlink()
    assert goal.stat().st_size > ROOM


def test_a_picture_without_a_suffix_is_a_png(tmp_path):
    draw(tmp_path / "picture")
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
