"""What the tests of readers share: the cases, and reading text as if it were a file."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from schedrl.workload.readers import FORMATS, read_trace, reader
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.recognise import Head, recognised


class Case(NamedTuple):
    """Inputs of a case, and the values they must give."""

    folder: Path
    expected: dict


@pytest.fixture(scope="session")
def case():
    def of(number):
        folder = Path(__file__).parent / "cases" / number
        return Case(folder, json.loads((folder / "expected.json").read_text())["expected"])

    return of


@pytest.fixture
def read_text(tmp_path):
    """Return a function: text or bytes of a file, and options -> (workload, rejected)."""

    def read(text, format=None, name="trace", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_trace(path, format, **options)

    return read


@pytest.fixture(scope="session")
def format_of():
    """Return a function: path -> name of the format by content."""

    def of(path):
        return recognised(Head.of(Source(path)), [reader(name) for name in FORMATS])

    return of
