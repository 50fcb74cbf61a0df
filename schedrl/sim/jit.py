"""One way to compile: cached on disk, under a folder named by the source of all kernels.

Numba checks only the file of the function itself, so a cache would survive a change in a function that it
calls from another file. A folder per state of the sources cannot be stale.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import get_type_hints

import numba
from numba import types
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

PACKAGE = Path(__file__).resolve().parent.parent


def _cache_dir() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in ("sim", "heuristics"):
        for source in sorted((PACKAGE / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "schedrl"
    try:
        base.mkdir(parents=True, exist_ok=True)
        writable = os.access(base, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        base = Path(tempfile.gettempdir()) / f"schedrl-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    return str(base / digest.hexdigest()[:16])


if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = _cache_dir()

njit = partial(numba.njit, cache=True, error_model="numpy", no_cfunc_wrapper=True)
"""Compile a function that Python calls."""


class _Leaf(CPUDispatcher):
    """Runs as plain Python where Python calls it, having no compiled entry for that."""

    def __call__(self, *args: object) -> object:
        return self.py_func(*args)


def leaf(function: Callable, *, cache: bool = True) -> Callable:
    """Compile a function into the compiled ones that call it: handing over the spec costs more than most do.

    Without the usual wrapper for Python it compiles in half the time.
    """
    made = njit(cache=cache, forceinline=True, no_cpython_wrapper=True)(function)
    made.__class__ = _Leaf
    return made


def part(function: Callable) -> Callable:
    """Compile a large function that compiled ones call from several places, once and apart from them.

    `forceinline` is said because a callee inherits it from the first function that calls it.
    """
    made = njit(no_cpython_wrapper=True, forceinline=False)(function)
    made.__class__ = _Leaf
    return made


@intrinsic
def borrowed(typingctx, array):  # noqa: ANN001, ANN201, D417
    """Return the array without its reference count, for the length of a call whose caller holds it.

    Handing rows of it to functions then costs no atomic increments, which otherwise take most of a decision.
    """

    def codegen(context, builder, signature, args):  # noqa: ANN001, ANN202
        value = make_array(signature.return_type)(context, builder, args[0])
        value.meminfo = context.get_constant_null(types.MemInfoPointer(types.voidptr))
        return value._getvalue()

    return array(array), codegen


@intrinsic
def named(typingctx, cls, numbers, first):  # noqa: ANN001, ANN201, D417
    """Read a NamedTuple of the class `cls` from the int64 array `numbers`, from place `first` on.

    Its fields are annotated int, float (kept by its bits) or bool. In a call from Python, Numba recognises an
    array much faster than a NamedTuple, whose type alone costs more than a step of a small batch.
    """
    known = {int: types.int64, float: types.float64, bool: types.boolean}
    fields = [known[kind] for kind in get_type_hints(cls.instance_class).values()]
    alike = len(set(fields)) == 1
    made = (
        types.NamedUniTuple(fields[0], len(fields), cls.instance_class)
        if alike
        else types.NamedTuple(fields, cls.instance_class)
    )

    def codegen(context, builder, signature, args):  # noqa: ANN001, ANN202
        data = make_array(signature.args[1])(context, builder, args[1]).data
        values = []
        for k, kind in enumerate(fields):
            place = builder.add(args[2], args[2].type(k))
            value = builder.load(builder.gep(data, [place]))
            if kind is types.float64:
                value = builder.bitcast(value, context.get_value_type(kind))
            elif kind is types.boolean:
                value = builder.icmp_unsigned("!=", value, value.type(0))
            values.append(value)
        return context.make_tuple(builder, signature.return_type, values)

    return made(cls, numbers, types.int64), codegen


class Batch:
    """A loop over environments in two compiled forms: in order, and over several threads.

    Write the loop with `numba.prange`. Its body must call plain compiled functions: bodies built from
    functions inlined into the loop have silently computed wrong results.
    """

    def __init__(self, loop: Callable, *, cache: bool = True) -> None:
        self.serial = njit(cache=cache, nogil=True)(loop)
        # Numba's cache knows a function by its name alone, not by its options.
        twin = FunctionType(
            loop.__code__, loop.__globals__, loop.__name__ + "_parallel", loop.__defaults__, loop.__closure__
        )
        twin.__qualname__ = loop.__qualname__ + "_parallel"
        self.parallel = njit(parallel=True, cache=cache, nogil=True)(twin)

    def __call__(self, *args: object, threads: int = 1) -> object:
        """Run over `threads` threads; 1 needs no thread pool at all."""
        if threads == 1:
            return self.serial(*args)
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        return self.parallel(*args)
