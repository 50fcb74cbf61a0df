"""A worker without TensorFlow that plays a part: what its supervisor sees of workers that fail in each way.

The parts stand in `parts.json` of the run's folder: generation -> worker -> part; without one it is "done".
Like a real one it listens at its address, does nothing before all have started, and fails because of another
only after that one, however long a full machine takes.
"""

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

orders = json.loads(sys.stdin.readline())
folder, index, generation = Path(orders["folder"]), orders["index"], str(orders["generation"][0])
parts = json.loads((folder / "parts.json").read_text()).get(generation, {})
part = parts.get(str(index), "done")


def tell(**message):
    os.write(orders["pipe"], json.dumps(message).encode() + b"\n")


def rest():
    while True:
        time.sleep(0.05)


def wait_for(name, count):
    until = time.monotonic() + 120
    while len(list(folder.glob(f"{name}_{generation}_*"))) < count:
        if time.monotonic() > until:
            sys.exit(f"waited for {name} in vain")
        time.sleep(0.02)


if part == "watchful":
    from schedrl.learning.worker_processes import end_with_parent

    end_with_parent(orders["supervisor"])
workers = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
server = socket.create_server(("127.0.0.1", int(workers[index].rpartition(":")[2])))
(folder / f"started_{generation}_{index}").write_text(f"{os.getpid()} {os.environ['TF_CONFIG']}")
if part != "asked early":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))
if part in ("never up", "asked early"):
    rest()
tell(up=True)
if part not in ("rests", "watchful"):
    wait_for("started", len(workers))
if part in ("lost", "others' disk"):
    wait_for("failed", len({"killed", "full disk"} & set(parts.values())))
elif part in ("killed", "full disk"):
    (folder / f"failed_{generation}_{index}").touch()
if part == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif part == "lost":
    tell(reason="lost contact with another worker", echo=True)
    sys.exit(75)
elif part == "full disk":
    tell(reason="can't write to x: No space left on device")
    sys.exit(2)
elif part == "others' disk":
    tell(reason="another worker could not save", echo=True)
    sys.exit(2)
elif part == "no number":
    tell(reason="not a number: policy_loss")
    sys.exit(3)
elif part == "broken":
    sys.exit(1)
elif part in ("rests", "watchful"):
    rest()
elif part == "asked":
    sys.exit(42)
