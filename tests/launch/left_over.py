"""What a run may leave behind: processes, shared memory, ports. Waits as long as a full machine may need."""

import contextlib
import socket
import time
from pathlib import Path


def free(address):
    """Tell whether nobody listens at an address and it can be bound again."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except OSError:
        pass
    else:
        return False
    try:
        socket.create_server((host, int(port))).close()
    except OSError:
        return False
    return True


def processes_of(folder):
    """Return the processes whose variables name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def shared_memory():
    """Return what multiprocessing has named in /dev/shm."""
    folder = Path("/dev/shm")
    return {p.name for p in folder.iterdir() if p.name[:4] in ("pym-", "psm_")} if folder.is_dir() else set()


def wait_for(condition, seconds=120):
    """Wait until a condition holds; fail after so many seconds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)
