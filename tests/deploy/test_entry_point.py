"""Two of the container's entry points, with the variables of the Job's pods, train here to the end.

Only `ADDRESS` (the pods' names mean something in a cluster alone) and `MODEL_DIR` have other values.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rendered import environment, module

sys.path.insert(0, str(Path(__file__).parents[1] / "launch"))

from left_over import free, processes_of, wait_for

pytestmark = [
    pytest.mark.slow,  # four times TensorFlow is imported
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc"),
]
ARGUMENTS = (
    "--algo ppo --num_envs 8 --num_steps 32 --batch_size 128 --checkpoint_every 256 --no_eval --listen"
    " --total_steps"
)
PATIENCE = 400
"""Seconds; only to catch hangs."""


def two_addresses():
    """Return a template of addresses that are free, below the ports that systems give away themselves."""
    for _ in range(1000):
        template = f"127.0.0.1:{random.randrange(1100, 3200)}{{index}}"
        if all(free(template.replace("{index}", str(i))) for i in range(2)):
            return template
    raise AssertionError("no two free ports")


class Pods:
    """Two entry points in sessions of their own; leaving ends whatever is left of them."""

    def __init__(self, root, folder, address, decisions):
        self.folder, self.running = folder, []
        self.files = [folder.parent / f"pod_{index}_of_{decisions}.txt" for index in range(2)]
        values = ("workers=2", "start_timeout=400", f"arguments={ARGUMENTS} {decisions}")
        for index, file in enumerate(self.files):
            changes = {"ADDRESS": address, "MODEL_DIR": str(folder)}
            environ, arguments = environment(module(root, "render"), index, *values, **changes)
            command = [sys.executable, str(root / "deploy" / "train" / "entrypoint.py"), *arguments]
            with open(file, "w") as said:
                streams = {"stdout": said, "stderr": subprocess.STDOUT, "start_new_session": True}
                self.running.append(subprocess.Popen(command, env={**os.environ, **environ}, **streams))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pod in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pod.pid, signal.SIGKILL)  # its worker ends with it
            pod.wait()

    @property
    def ended(self):
        return any(pod.poll() is not None for pod in self.running)

    @property
    def said(self):
        return "\n".join(file.read_text() for file in self.files)

    def codes(self):
        """Return the exit codes once all have ended, with all that they had started."""
        found = [pod.wait(PATIENCE) for pod in self.running]
        wait_for(lambda: not processes_of(self.folder))
        return found


def saved(folder):
    return sorted(int(path.stem.partition("_")[2]) for path in (folder / "checkpoints").glob("step_*.npz"))


def test_two_entry_points_train_are_preempted_and_go_on_to_the_end(root, tmp_path):
    folder, address = tmp_path / "run", two_addresses()
    with Pods(root, folder, address, 10_000_000) as pods:
        wait_for(lambda: saved(folder) or pods.ended, PATIENCE)
        pods.running[1].send_signal(signal.SIGTERM)
        assert pods.codes() == [42, 42], pods.said
    before = saved(folder)[-1]
    # As the Job's controller does; that there is something to go on from, the entry point sees.
    with Pods(root, folder, address, before + 512) as pods:
        assert pods.codes() == [0, 0], pods.said
        assert f"worker 1 of 2: {address.replace('{index}', '0')}" in pods.said
        assert f"continuing up to {before + 512:,} decisions" in pods.said
    assert saved(folder)[-1] == before + 512
    assert (folder / "policy.npz").exists()
    for index in range(2):
        wait_for(lambda index=index: free(address.replace("{index}", str(index))))
