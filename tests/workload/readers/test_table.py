"""Tables: the parser for clean blocks and the one that finds rows at fault give the same."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, _fast, _slow, number, read_table
from schedrl.workload.readers.rejected import Rejected

WHOLE = ["0", "1", "42", "-7", "-0", "007", "+5", "10000000000000000000", "9223372036854775807", "-1"]
PARTS = [
    "1.5",
    "1e3",
    "1E-5",
    ".5",
    "5.",
    "-0.0",
    "0.042409339",
    "1e400",
    "inf",
    "-Infinity",
    "nan",
    "NAN",
    "1e",
]
ODD = [
    "",
    " ",
    "NA",
    "None",
    "null",
    "x",
    "２",
    "1_000",
    "0x10",
    "True",
    "1 2",
    '"3"',
    '"',
    'a"b',
    "é",
    "\\N",
    "#N/A",
]
ODD += [
    "\t4",
    "5 ",
    "1,2",
    "'6'",
    "\u00a07",
    "- 1",
    "1d5",
    "1f",
    "--1",
    "4;5",
    "1;",
    ";",
    "None ",
    "n/a",
    "<NA>",
]
FIELD = st.sampled_from(WHOLE * 4 + PARTS * 2 + ODD) | st.text(
    '01-+.e \t\x0b\x0c\x85"\rxé\u3000;#', max_size=4
)
LAYOUTS = {
    "commas": Layout(("id", "a", "b"), frozenset(["id"])),
    "commas, whole numbers for text": Layout(("id", "a", "b"), frozenset(["id"]), numbered=True),
    "a column that is not read": Layout(("c", "id", "a"), frozenset(["id"]), frozenset(["c"]), needed=2),
    "only numbers": Layout(("id", "a", "b")),
    "white space": Layout(
        ("id", "a", "b"), frozenset(["id"]), separator=None, comment=";", needed=2, numbered=True
    ),
}


def blocks(separator):
    ends = st.sampled_from(["\n"] * 6 + ["\r\n", "\n\n", "\n \n", " ; note\n", "\r"])
    rows = st.tuples(st.lists(FIELD, min_size=1, max_size=4), ends)
    clean = st.tuples(st.lists(st.sampled_from(WHOLE[:4] + PARTS[:4]), min_size=3, max_size=3), st.just("\n"))
    for_rows = st.lists(rows, min_size=1, max_size=5) | st.lists(clean, min_size=1, max_size=5)
    mixed = st.builds(lambda a, b: a + b, st.lists(clean, max_size=3), st.lists(rows, max_size=2))
    return (for_rows | mixed).map(lambda held: "".join(separator.join(fields) + end for fields, end in held))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "empty"
    path.write_bytes(b"")
    return Source(path)


@pytest.mark.parametrize("kind", LAYOUTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_both_parsers_give_the_same_table(source, kind, data):
    layout = LAYOUTS[kind]
    text = data.draw(blocks(" " if layout.separator is None else ","))
    agree(source, layout, text)


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3\n4,5,6\n",
        "1,2,3,4\n1,2,3,4\n",
        "1,2,3\n1,2,3,4\n",
        "1,2,3,\n1,2,3,\n",
        "1,2\n1,2,3\n",
        '"a\nb",1,2\nc,1,2\n',
        '"a\n\nb",1,2\n\n',
        "a,1,2\n\nb,1,2\n",
        "a,1,2\n   \nb,1,2\n",
        "a,1,2\r\nb,1,2\r\n",
        " a , 1 , 2 \n",
        "a,NA,2\nNA,1,2\n",
        "1,18446744073709551615,9223372036854775808\n",
        "0,1,1\n00,1,1\n",
        "1.0,1,1\n1,1,1\n",
        ",1,2\n,3,4\n",
        "1,,2\n,3,4\n",
        'x,"1",2\n',
        'x,1,"2\n',
    ],
)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_both_parsers_agree_on_known_traps(source, kind, text):
    layout = LAYOUTS[kind]
    agree(source, layout, text.replace(",", " ") if layout.separator is None else text)


def agree(source, layout, text):
    block = text.encode()
    fast = _fast(source, block, layout, 1, text.count("\n"))
    if fast is None:
        return
    rejected = Rejected()
    slow = _slow(text, layout, 1, rejected)
    assert not len(rejected), list(rejected)
    assert fast.index.tolist() == slow.index.tolist()
    for name in layout.columns:
        if name in layout.unread:
            assert name not in fast
            assert name not in slow
        elif name in layout.text:
            assert list(map(str, fast[name].tolist())) == slow[name].tolist()
        else:
            assert fast[name].dtype == np.float64
            np.testing.assert_array_equal(fast[name].to_numpy(), slow[name].to_numpy())


@given(st.text(max_size=8))
@example("1_0")
@example("\ufeff1")
@settings(deadline=None)
def test_a_number_is_what_python_reads_without_underscores(field):
    value = number(field)
    try:
        expected = float(field.strip())
    except ValueError:
        expected = None
    assert value is None or np.isnan(value) or value == expected


def test_lines_are_those_of_the_file_over_blocks_and_quoted_line_ends(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(
        "".join(f'"{n}\n{n}",{n}\n' if n % 7 == 0 else f"{n},{n if n % 11 else 'x'}\n" for n in range(400))
    )
    layout, rejected = Layout(("id", "a"), frozenset(["id"])), Rejected()
    blocks = Source.blocks
    monkeypatch.setattr(Source, "blocks", lambda self, quoted=False: blocks(self, quoted, size=100))
    tables = list(read_table(Source(path), layout, rejected))
    text = path.read_text().split("\n")
    assert len(tables) > 10
    assert sum(map(len, tables)) + len(rejected) == 400
    for table in tables:
        for line, name in zip(table.index, table["id"], strict=True):
            assert text[line - 1].strip('"').startswith(name.split("\n")[0])
    assert all(text[row.line - 1].endswith(",x") for row in rejected)


def test_another_encoding_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("任务,1\n".encode("gbk"))
    layout = Layout(("id", "a"), frozenset(["id"]))
    with pytest.raises(UserError, match="utf-8.*gbk"):
        list(read_table(Source(path), layout, Rejected()))
    (table,) = read_table(Source(path, "gbk"), layout, Rejected())
    assert table["id"].tolist() == ["任务"]
