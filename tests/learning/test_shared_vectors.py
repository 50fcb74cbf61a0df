"""Arrays shared by processes, rows handed over without locks, and the life of the processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from shared_writers import add_and_tell, fail, wait_forever

from schedrl.learning.shared_vectors import Ring, SharedArrays, read_text, write_text
from schedrl.learning.worker_processes import WorkerProcesses


def wait_until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Tell whether a process runs (one that has ended and waits to be collected doesn't)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def left_behind() -> set[str]:
    """Return what multiprocessing has named in /dev/shm."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("pym-", "psm_"))}


def test_arrays_have_their_shapes_and_do_not_overlap():
    arrays = SharedArrays({"a": ((3,), np.float32), "b": ((2, 2), np.int64), "c": ((), np.uint8)})
    arrays["a"][:] = 1.5
    arrays["b"][:] = -7
    arrays["c"][...] = 255
    assert list(arrays) == ["a", "b", "c"]
    assert [arrays[name].shape for name in arrays] == [(3,), (2, 2), ()]
    assert (arrays["a"] == 1.5).all()
    assert (arrays["b"] == -7).all()
    assert arrays["c"] == 255
    assert all(array.ctypes.data % 64 == 0 for array in arrays.values())


def test_text_is_cut_to_its_place():
    place = np.zeros(8, np.uint8)
    write_text(place, "far too long")
    assert read_text(place) == "far too "
    write_text(place, "short")
    assert read_text(place) == "short"


def test_a_ring_hands_over_every_row_once_and_in_order():
    arrays = SharedArrays(Ring.layout("news", 2, 4, 2))
    ring, other = Ring(arrays, "news", 0), Ring(arrays, "news", 1)
    seen = []
    for i in range(7):
        ring.put(np.array([[i, 0], [i, 1]]))
        assert ring.room == 2
        seen += ring.take().tolist()
    assert seen == [[i, j] for i in range(7) for j in range(2)]
    assert ring.take().shape == (0, 2)
    assert other.room == 4
    with pytest.raises(ValueError, match="room for 4"):
        ring.put(np.zeros((5, 2)))


def test_processes_share_arrays_and_hand_over_rows():
    arrays = SharedArrays({"sums": ((2,), np.int64), **Ring.layout("news", 2, 8, 3)})
    workers = WorkerProcesses(add_and_tell, lambda index: (arrays, index, 100), 2)
    workers.start(0)
    workers.start(1)
    rings, rows = [Ring(arrays, "news", i) for i in range(2)], [[], []]

    def drained() -> bool:
        for ring, found in zip(rings, rows, strict=True):
            found += ring.take().tolist()
        return not workers.running

    wait_until(drained)
    drained()
    assert rows == [[[index, i, i + 1] for i in range(100)] for index in range(2)]
    np.testing.assert_array_equal(arrays["sums"], [100, 100])
    assert workers.deaths() == []


def test_deaths_are_reported_with_their_reason_and_replaced():
    arrays = SharedArrays({"pids": ((2,), np.int64)})
    workers = WorkerProcesses(wait_forever, lambda index: (arrays, index), 2)
    workers.start(0)
    workers.start(1)
    wait_until(lambda: arrays["pids"].all())
    first, second = arrays["pids"].tolist()
    os.kill(second, signal.SIGKILL)
    wait_until(workers.deaths)
    (death,) = workers.deaths()
    assert (death.worker, death.pid, death.reason) == (1, second, "killed by SIGKILL")
    workers.start(1)
    assert workers.deaths() == []
    wait_until(lambda: arrays["pids"][1] != second)
    os.kill(first, signal.SIGINT)  # Ctrl-C is the parent's to handle
    time.sleep(0.2)
    assert workers.deaths() == []
    workers.kill_one(0)
    assert alive(int(arrays["pids"][1]))
    workers.kill()
    assert not workers.running


def test_an_exit_code_is_reported():
    workers = WorkerProcesses(fail, lambda index: (None, index), 1)
    workers.start(0)
    wait_until(workers.deaths)
    assert workers.deaths()[0].reason == "exit code 3"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="counts what is in /dev/shm")
def test_workers_end_with_their_parent_and_leave_nothing_behind():
    before = left_behind()
    code = (
        "import numpy as np, shared_writers\n"
        "from schedrl.learning.shared_vectors import SharedArrays\n"
        "import threading, time\n"
        "arrays = SharedArrays({'pids': ((2,), np.int64)})\n"
        "threading.Thread(target=shared_writers.parent_of_two, args=(arrays,), daemon=True).start()\n"
        "while not arrays['pids'].all(): time.sleep(0.02)\n"
        "print(*arrays['pids'], flush=True)\n"
        "time.sleep(600)\n"
    )
    here = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
    environment = os.environ | {"PYTHONPATH": here}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(alive, pids))
    parent.kill()
    parent.communicate()
    wait_until(lambda: not any(map(alive, pids)), 20)
    wait_until(lambda: left_behind() <= before)  # what other tests have there comes and goes
