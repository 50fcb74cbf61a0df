"""Readers of job traces: a file in any known format becomes `(workload, rejected)`.

`FORMATS` lists them, one module of `formats` each with

* `TITLE`: what it is, in a few words, and `SOURCE`: where the format is documented and how to cite the data;
* `OPTIONS`: the names of what its `read` can be told;
* `recognises(head)`: whether a file begins like that, see `recognise.Head`;
* `read(source, rejected, *, lenient=False, **options)`: the jobs.
"""

import importlib
import inspect
import os
from types import ModuleType
from typing import Any

import numpy as np

from schedrl.settings import UserError, one_of
from schedrl.workload.readers.formats.own import is_own
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.recognise import Head, recognised
from schedrl.workload.readers.rejected import REASONS, Rejected, RejectedRow
from schedrl.workload.types import Workload

__all__ = ["FORMATS", "REASONS", "Rejected", "RejectedRow", "read_trace", "reader"]

FORMATS = (
    "swf",
    "alibaba2018",
    "alibaba_gpu2020",
    "openb",
    "gwf",
    "batsim",
    "kubernetes",
    "philly",
    "google2011",
    "google2019",
    "azure2019",
    "azure2020",
    "slurm",
    "csv",
)
"""Names of the formats, in the order in which an unknown file is tried; `csv`, any table, is last."""


def reader(name: str) -> ModuleType:
    """Return the module that reads the format called `name`.

    Raises:
        UserError: there is none.
    """
    known = one_of("trace format", name, FORMATS)
    return importlib.import_module(f"schedrl.workload.readers.formats.{known}")


def read_trace(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    strict: bool = False,
    lenient: bool = False,
    encoding: str | None = None,
    **options: Any,
) -> tuple[Workload, Rejected]:
    """Read the jobs of a file.

    Args:
        path: the file, plain or gzip.
        format: one of `FORMATS`; None: by its content.
        strict: any row that is rejected or mended is an error.
        lenient: of rows that contradict each other keep the first; else they are an error.
        encoding: of text, where it isn't the format's usual one.
        **options: what that reader can be told besides (its `OPTIONS`).

    Returns:
        the jobs, and the rows that are none with line number and reason.

    Raises:
        UserError: the file can't be read, is in no known format, or holds no usable job.
    """
    source = Source(path, encoding)
    if not source.head.strip():
        raise UserError(f"{path} is empty: no jobs; check that it was fetched whole")
    if format is not None:
        format = one_of("trace format", format, FORMATS)
    if is_own(source.head) and (format or "csv") != "csv":
        raise UserError(
            f"{path} begins with the mark of this library's own CSV, not {format}; leave out format"
        )
    format = format or ("csv" if "map" in options else None)
    chosen = reader(format or recognised(Head.of(source), [reader(name) for name in FORMATS]))
    unknown = sorted(set(options) - set(chosen.OPTIONS))
    if unknown:
        takes = ", ".join(chosen.OPTIONS) or "none"
        raise UserError(f"{', '.join(unknown)} is no option of {chosen.TITLE}; it takes {takes}")
    for name, parameter in inspect.signature(chosen.read).parameters.items():
        if isinstance(parameter.default, bool) and not isinstance(options.get(name, False), bool):
            raise UserError(f"{name} is {options[name]!r}; it can be true or false")
    rejected = Rejected(str(path), strict)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # what is out of range is infinite, and rejected for it
        return chosen.read(source, rejected, lenient=lenient, **options), rejected
