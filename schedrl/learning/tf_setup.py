"""TensorFlow, imported once and set up so that runs repeat bit for bit.

One thread inside an operation and one between operations: these networks are too small for more, and two
threads on a busy machine are far slower than one. Import TensorFlow through here only; it takes seconds.
"""

from __future__ import annotations

import os
from typing import Any


def tensorflow(threads: int = 1, seed: int | None = None) -> Any:
    """Return the `tensorflow` module, set to `threads` threads and deterministic operations.

    Args:
        threads: intra-op threads; takes effect before TensorFlow's first operation only.
        seed: TensorFlow's global seed. Nothing here draws from it; set so that user code repeats as well.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError:
        pass  # already running, as in a notebook or a test: the first caller chose
    tf.config.experimental.enable_op_determinism()
    if seed is not None:
        tf.random.set_seed(seed)
    return tf
