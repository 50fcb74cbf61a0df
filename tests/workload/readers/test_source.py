"""Files as blocks of whole lines: zipped or not, archives, folders, damage; formats told by content."""

import bz2
import gzip
import io
import tarfile
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload.readers import FORMATS, read_trace, reader
from schedrl.workload.readers.parsing.source import Source

JOBS = b"job_id,submit,run,cpu\na,0,1,1\n"


def archive():
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        member = tarfile.TarInfo("jobs.csv")
        member.size = len(JOBS)
        tar.addfile(member, io.BytesIO(JOBS))
    return raw.getvalue()


def zipped():
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as file:
        file.writestr("jobs.csv", JOBS)
    return raw.getvalue()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (zipped(), "a zip archive; unpack it first"),
        (bz2.compress(JOBS), "a bzip2 file"),
        (b"\xfd7zXZ\x00rest", "an xz file"),
        (archive(), "a tar archive"),
        (gzip.compress(archive()), "a tar archive"),
        (gzip.compress(JOBS)[:-4], "damaged gzip"),
        (gzip.compress(JOBS * 999)[:40], "damaged gzip"),
        (b"\x1f\x8b not gzip at all", "damaged gzip"),
        (b"", "is empty: no jobs"),
        (b"\n \n", "is empty: no jobs"),
        (b"\xef\xbb\xbf", "no jobs|is empty|no format"),
        (b"hello world\n", "no format"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # the bytes hold the time of packing
)
def test_what_is_no_trace_is_told(tmp_path, data, what):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(UserError, match=what):
        read_trace(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_trace(tmp_path / "nothing.csv")
    with pytest.raises(UserError, match="is a folder"):
        read_trace(tmp_path)


def test_names_and_options_that_there_are_not(read_text):
    with pytest.raises(UserError, match="unknown trace format 'swff'"):
        read_text(JOBS, "swff")
    with pytest.raises(UserError, match="gangs is no option of any CSV"):
        read_text(JOBS, gangs=True)
    with pytest.raises(UserError, match="gangs is 'no'; it can be true or false"):
        read_text("1 0 -1 5 1\n", "swf", gangs="no")


def test_zipped_by_content_whatever_its_name(tmp_path):
    for name, data in [
        ("a.csv", gzip.compress(JOBS)),
        ("b.gz", JOBS),
        ("c", gzip.compress(JOBS) + gzip.compress(b"")),
    ]:
        (tmp_path / name).write_bytes(data)
        assert read_trace(tmp_path / name)[0].id.tolist() == ["a"]


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.sampled_from(["a,b", '"x\ny"', "", '"a""b"', "é", '"p\n\n"']), max_size=20),
    size=st.integers(1, 30),
    quoted=st.booleans(),
)
def test_blocks_are_whole_rows_in_order(tmp_path_factory, rows, size, quoted):
    path = tmp_path_factory.mktemp("blocks") / "f"
    data = "\n".join(rows).encode()
    path.write_bytes(b"\xef\xbb\xbf" + data)
    blocks = list(Source(path).blocks(quoted, size=max(size, 4)))
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    if quoted and max(map(len, rows), default=0) < size:
        assert all(block.count(b'"') % 2 == 0 for block in blocks)


@pytest.mark.parametrize("name", FORMATS)
def test_every_reader_says_what_it_is(name):
    module = reader(name)
    assert len(module.TITLE) > 5
    assert module.SOURCE.startswith("http")
    assert isinstance(module.OPTIONS, tuple)
