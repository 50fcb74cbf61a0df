"""TensorFlow, imported once and set up so that runs repeat bit for bit.

One thread inside an operation and one between operations: these networks are too small for more, and two
threads on a busy machine are far slower than one. Import TensorFlow through here only; it takes seconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def tensorflow(threads: int = 1, seed: int | None = None, memory_growth: bool | None = None) -> Any:
    """Return the `tensorflow` module, set to `threads` threads and deterministic operations.

    Args:
        threads: intra-op threads; takes effect before TensorFlow's first operation only.
        seed: TensorFlow's global seed. Nothing here draws from it; set so that user code repeats as well.
        memory_growth: take GPU memory as it is needed, or all at once; before the first operation only.
    """
    if "tensorflow" not in sys.modules:
        _import_quietly()
    import tensorflow as tf

    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError:
        pass  # already running, as in a notebook or a test: the first caller chose
    tf.config.experimental.enable_op_determinism()
    if memory_growth is not None:
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, memory_growth)
    if seed is not None:
        tf.random.set_seed(seed)
    return tf


def _import_quietly() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with muted_stderr():
        import tensorflow as tf

        tf.config.list_physical_devices()  # the search for GPUs, which reports at length that there is none


@contextmanager
def muted_stderr() -> Iterator[None]:
    """Keep what native code writes to file descriptor 2 off the terminal; show it after all on an exception.

    TensorFlow logs about oneDNN and CUDA before it reads TF_CPP_MIN_LOG_LEVEL. Setting that variable to 0
    shows everything again.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(terminal, kept.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
