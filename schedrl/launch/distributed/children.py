"""Worker processes as their supervisor sees them: started, listened to, and never left behind.

A worker gets its orders as one line of JSON on its standard input and tells through a pipe that it is up, or
why it failed. It ends with its supervisor, even if that is killed (see `worker_processes.end_with_parent`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from schedrl.registry import ROOT

DONE, REFUSED, NUMERICS, PREEMPTED, LOST = 0, 2, 3, 42, 75
"""Exit codes of workers: bad input or disk, no number, asked to stop and saved, lost contact with another."""
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "GRPC_VERBOSITY": "NONE"}
"""TensorFlow's own lines about a lost worker are many; the supervisor says it in one. Set 0 to see them."""
COMMAND = (sys.executable, "-m", "schedrl.launch.distributed.worker")


class Child:
    """One worker process.

    Attributes:
        up: it has found all others.
        told: what it said about its failure: `reason`, and `echo` if it is that of another.

    `network` are descriptors of the network that it enters (`namespace`); empty: the host's.
    """

    def __init__(
        self,
        index: int,
        addresses: Sequence[str],
        orders: Mapping[str, Any],
        network: Sequence[int] = (),
    ):
        self.index, self.up, self.told = index, False, {}  # type: ignore[var-annotated]
        config = {"cluster": {"worker": list(addresses)}, "task": {"type": "worker", "index": index}}
        paths = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        own = {"TF_CONFIG": json.dumps(config), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self._heard = b""
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            env={**QUIET, **os.environ, **own},
            pass_fds=[write, *network],
            start_new_session=True,  # Ctrl-C in the terminal is for the supervisor, which then ends this one
        )
        os.close(write)
        assert self.process.stdin is not None
        own_orders = {**orders, "index": index, "pipe": write, "supervisor": os.getpid()}
        own_orders["network"] = list(network)
        with contextlib.suppress(BrokenPipeError):  # it has ended already: its exit code tells
            self.process.stdin.write(json.dumps(own_orders).encode() + b"\n")
            self.process.stdin.close()

    @property
    def code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        code = self.process.poll()
        return PREEMPTED if code == -signal.SIGTERM else code  # before it could handle that, nothing to save

    def listen(self) -> None:
        """Take in what it has told."""
        try:
            while part := os.read(self._read, 65536):
                self._heard += part
        except BlockingIOError:
            pass
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.up = self.up or "up" in message
            if "reason" in message:
                self.told = message

    @property
    def reason(self) -> str:
        """Say why it ended."""
        code = self.code
        if self.told:
            return f"worker {self.index}: {self.told['reason']}"
        if code is not None and code < 0:
            return f"worker {self.index} was killed by {signal.Signals(-code).name}"
        return f"worker {self.index} ended with exit code {code}"

    @property
    def echo(self) -> bool:
        """Whether its failure only follows from another's."""
        return bool(self.told.get("echo")) or self.code in (LOST, -signal.SIGABRT)

    def ask_to_stop(self) -> None:
        """Let it save and end."""
        if self.code is None:
            self.process.terminate()

    def kill(self) -> None:
        """End it and all that it has started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self._read >= 0:
            self.listen()
            os.close(self._read)
            self._read = -1
