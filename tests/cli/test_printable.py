"""What a file or an argument holds never commands a terminal, forges a line or ends a run by its encoding."""

import csv
import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compare_algorithms
import job_distribution
from schedrl.evaluation.table import plain_table, print_table
from schedrl.settings import UserError, line_of, main_guard, safe_cell, save_picture
from schedrl.settings.printable import Door, printable, printable_streams

ROOT = Path(__file__).parents[2]
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\ud800"
SIGNS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")
SWF = (
    f"; Computer: {ESCAPE}\n; MaxProcs: 8\r\x1b[31m\n; MaxNodes{ESCAPE}: 9\n"
    "1 0 -1 5 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n"
)
CHINESE = "job_id,submit,run,cpu\n任务一,0,60,2\n任务二,1,60,2\n任务二,2,60,2\n"


@given(st.text())
@settings(deadline=None)
def test_what_is_printed_is_printable_and_text_stays_as_it_is(text):
    assert not SIGNS.search(printable(text))
    assert "\n" not in line_of(text)
    assert len(line_of(text)) <= 200
    if not re.search("[^ -~]", text) and len(text) <= 200:
        assert line_of(text) == text


@pytest.mark.parametrize("size", [10, 600, 65_000, 3_000_000])
def test_errors_are_one_line_with_their_remedy(capsys, size):
    @main_guard
    def main(argv=None):
        raise UserError(f"name is '{ESCAPE}\n{'x y ' * (size // 4)}' and {'z' * size}; remedy at the end")

    assert main([]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert err.endswith("remedy at the end\n")
    assert len(err) <= 610
    assert not SIGNS.search(err)


def test_a_stream_takes_what_its_encoding_lacks():
    for encoding, shown in [("ascii", b"\\xb5s \\u4efb\n"), ("gbk", b"\\xb5s \xc8\xce\n")]:
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
        print("µs 任", file=Door(stream), flush=True)
        assert raw.getvalue() == shown


def test_the_door_is_put_once_and_taken_away():
    before = sys.stdout
    with printable_streams():
        door = sys.stdout
        assert door.behind is before
        with printable_streams():
            assert sys.stdout is door
        assert sys.stdout.isatty() == before.isatty()
    assert sys.stdout is before


def test_tables_show_markup_and_line_ends_as_text():
    assert plain_table("t", ["a", "b"], [["[red]x", "1"]]).endswith("[red]x  1")
    for terminal in (False, True):
        stream = io.StringIO()
        stream.isatty = lambda terminal=terminal: terminal
        print_table("t", ["a", "b"], [["[red]x\n\x1b[31my", "1"]], Door(stream))
        assert "[red]x \\x1b[31my" in stream.getvalue()


@pytest.mark.parametrize("command", ["inspect", "convert", "json", "replay"])
def test_escape_sequences_of_a_file(tmp_path, capsys, command):
    path = tmp_path / "log.swf"
    path.write_bytes(SWF.encode("utf-8", "surrogatepass"))
    if command == "replay":
        where = ["--trace", str(path), "--policies", "sjf+best_fit", "--output_dir", str(tmp_path / "out")]
        code = compare_algorithms.main([*where, "--capacity", "cpu=8"])  # that of the header isn't plain
    else:
        flags = {"inspect": [], "json": ["--json"], "convert": [str(tmp_path / "out.csv")]}[command]
        code = job_distribution.main([command.replace("json", "inspect"), str(path), *flags])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert not SIGNS.search((out + err).replace("\r\n", "\n"))


def test_ids_of_another_line(tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    path.write_text('job_id,submit,run,cpu\n"a\nerror: forged\x1b[2J",0,-60,2\nb,0,60,2\n')
    assert job_distribution.main(["inspect", str(path)]) == 0
    out, _ = capsys.readouterr()
    assert "\nerror: forged" not in out
    assert "a error: forged\\x1b[2J" in out


@pytest.mark.parametrize("encoding", ["ascii", "gbk"])
@pytest.mark.slow
def test_commands_on_a_terminal_that_is_not_utf8(tmp_path, encoding):
    jobs, cluster = tmp_path / "任务.csv", tmp_path / "机器.toml"
    jobs.write_text(CHINESE, encoding="utf-8")
    cluster.write_text('[[machines]]\nname = "机器 µ"\ncpu = 4\n', encoding="utf-8")
    for command in (
        ["job_distribution.py", "inspect", jobs, "--lenient", "--plot", tmp_path / "图.png"],
        ["job_distribution.py", "convert", jobs, tmp_path / "out.csv", "--lenient"],
        ["compare_algorithms.py", "--trace", jobs, "--cluster", cluster, "--lenient", "--output_dir"]
        + [tmp_path / encoding, "--policies", "fifo+first_fit+strict,sjf+best_fit"],
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=ROOT,
            env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C"},
            capture_output=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr.decode(encoding)
        assert b"Traceback" not in done.stderr
        done.stdout.decode(encoding)


@pytest.mark.parametrize(
    "text", ["$x^{$", "$\\frac{1}$", "100 $ and $5_{", "\ud800 half", "任务 \x1b[31m", "a\nb"]
)
def test_any_text_can_be_drawn(tmp_path, text):
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 10], [1, 1000], label=text)
    axes.set(title=text, xlabel=text, yscale="log", xscale="log")
    axes.legend()
    other = figure.add_axes((0.5, 0.5, 0.2, 0.2))
    other.set_yticks([0, 1], [line_of(text), "b"])
    figure.suptitle(text)
    for form in ("png", "pdf", "svg"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            save_picture(figure, tmp_path / f"p.{form}", format=form)
    assert axes.get_xticklabels()[0].get_parse_math()  # our own powers of ten are still formulas
    assert text == axes.get_title() or not text.isprintable()


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        *(("=1+1", "'=1+1"), ("+x", "'+x"), ("@SUM(A1)", "'@SUM(A1)"), ("-2+3", "'-2+3"), ("＝1", "'＝1")),
        *(("-5", "-5"), ("+1.5e-3", "+1.5e-3"), ("-inf", "-inf"), ("job-1", "job-1"), (-5.0, -5.0), ("", "")),
        ("\t=1", "'\t=1"),
        ("a\x00b", "a\\x00b"),
    ],
)
def test_cells_that_a_spreadsheet_would_run(cell, written):
    assert safe_cell(cell) == written


@pytest.mark.parametrize("safe", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_reports_over_hostile_names(tmp_path, capsys, safe):
    jobs, cluster, out = tmp_path / "jobs.csv", tmp_path / "cluster.toml", tmp_path / "out"
    rows = [
        f'"{name}",{n},60,2,"{name}"' for n, name in enumerate(["=cmd|' /C calc'!A0", "<script>", "$x^{$"])
    ]
    jobs.write_text("\n".join(["job_id,submit,run,cpu,user", *rows, ""]))
    cluster.write_text(
        '[[machines]]\nname = "$x^{$"\ncpu = 4\n[[machines]]\nname = "=<b>\\u001b[2J"\ncpu = 4\n'
    )
    command = ["--trace", jobs, "--cluster", cluster, "--policies", "sjf+best_fit,fifo+first_fit+strict"]
    command += ["--output_dir", out, "--safe_csv", safe]
    assert compare_algorithms.main(list(map(str, command))) == 0
    _, err = capsys.readouterr()
    assert not err
    with open(out / "job_completion_time.csv", newline="", encoding="utf-8") as file:
        cells = {cell for row in csv.reader(file) for cell in row}
    assert any(cell.startswith("'=cmd") for cell in cells) == safe
    assert any(cell.startswith(("=cmd", "=<b>")) for cell in cells) != safe
    page = next(out.glob("*.html")).read_text(encoding="utf-8")
    assert "<script>" not in page
    assert not SIGNS.search(page)
