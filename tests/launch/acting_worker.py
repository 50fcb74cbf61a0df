"""A worker without TensorFlow that plays a part: what its supervisor sees of workers that fail in each way.

The parts stand in `parts.json` of the run's folder: generation -> worker -> part; without one it is "done".
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

orders = json.loads(sys.stdin.readline())
folder, index, generation = Path(orders["folder"]), orders["index"], str(orders["generation"][0])
part = json.loads((folder / "parts.json").read_text()).get(generation, {}).get(str(index), "done")


def tell(**message):
    os.write(orders["pipe"], json.dumps(message).encode() + b"\n")


def rest():
    while True:
        time.sleep(0.05)


if part == "watchful":
    from schedrl.launch.distributed.worker import end_with_parent

    end_with_parent()
(folder / f"started_{generation}_{index}").write_text(f"{os.getpid()} {os.environ['TF_CONFIG']}")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))
if part == "never up":
    rest()
tell(up=True)
if part == "killed":
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
elif part == "lost":
    time.sleep(0.3)
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
time.sleep(0.1)
