"""Which format a file is in: its own mark first, more than one row, and names as they were typed."""

import numpy as np
import pytest

import job_distribution
from schedrl.settings import UserError
from schedrl.workload import Workload
from schedrl.workload.readers import read_trace
from schedrl.workload.writers import write_trace

ALIKE = {
    "alibaba2018": "M1,2,j_1,1,Terminated,100,160,100,0.5",
    "alibaba_gpu2020": "j1,worker,1.0,Terminated,5.0,7.5,600.0,29.2,50.0,T4",
    "google2011": "600000000,,3418309,0,4155527081,3,70s3v5qRyCO,3,9,0.125,0.0744,0.0004,0",
    "azure2019": "vm,s,d,100,400,9,5,8,Interactive,4,32",
}
"""Rows of formats that have no header row."""


def test_what_convert_wrote_inspect_reads_whole(tmp_path, capsys):
    """Thirteen columns, and a user whose number could be a type of event: as Google's tasks have them."""
    rows = (f"{n} {n * 10} -1 60 4 -1 -1 4 120 -1 1 {n % 70} 1 1 1 1 0 0" for n in range(1, 1001))
    (tmp_path / "site.swf").write_text("; MaxProcs: 64\n" + "\n".join(rows) + "\n")
    files = [str(tmp_path / name) for name in ("site.swf", "site.csv")]
    assert job_distribution.main(["convert", *files]) == 0
    assert job_distribution.main(["inspect", files[1]]) == 0
    assert "1,000 jobs" in capsys.readouterr().out
    (first, _), (second, rejected) = map(read_trace, files)
    assert first.same_as(second)
    assert not len(rejected)


@pytest.mark.parametrize("name", ALIKE)
def test_our_own_mark_wins_over_rows_that_resemble_another_format(tmp_path, name):
    row = ALIKE[name].split(",")
    extra = {f"c{n}": np.array([text] * 30, object) for n, text in enumerate(row)}
    jobs = Workload(np.arange(30.0), np.ones(30), np.ones((30, 1)), ["cpu"], extra=extra)
    write_trace(jobs, tmp_path / "jobs.csv")
    assert read_trace(tmp_path / "jobs.csv")[0].same_as(jobs)
    with pytest.raises(UserError, match="own CSV, not swf; leave out format"):
        read_trace(tmp_path / "jobs.csv", "swf")


@pytest.mark.parametrize("name", ALIKE)
def test_one_row_that_resembles_a_format_does_not_decide(tmp_path, format_of, name):
    width = len(ALIKE[name].split(","))
    header = ["id", "arrival", "duration", "cpu", *(f"c{n}" for n in range(width - 4))]
    rows = [[f"j{n}", str(n), "1", "1", *["x"] * (width - 4)] for n in range(8)]
    path = tmp_path / "table"
    for others in (rows, []):
        path.write_text(
            "\n".join([",".join(header), *map(",".join, others[:4]), ALIKE[name], *map(",".join, others[4:])])
        )
        assert format_of(path) == "csv"
    path.write_text(f"{ALIKE[name]}\n" * 3 + "damaged\n")
    assert format_of(path) == name


def test_a_row_of_eighteen_numbers_does_not_make_an_swf_log(tmp_path, format_of):
    path = tmp_path / "table"
    note = " ".join(["1"] * 18)
    path.write_text("id,arrival,duration,cpu\n" + "a,0,1,1\n" * 6 + f"{note}\n")
    assert format_of(path) == "csv"


def test_messages_keep_the_name_of_the_file_as_it_was_typed(tmp_path):
    path = tmp_path / "Cluster-A.TXT"
    path.write_text("nothing that anybody knows\n")
    with pytest.raises(UserError, match=r"Cluster-A\.TXT is in no format"):
        read_trace(path)


def test_a_name_with_a_comma_can_be_mapped(read_text):
    text = '"Job, number","Submit, local","Elapsed=s, wall[x]",cpu\nA,1500,2,3\nB,2500,4,3\n'
    for map in (
        'id="Job, number",arrival="Submit, local"[ms],duration="Elapsed=s, wall[x]",cpu=cpu',
        '"id=Job, number","arrival=Submit, local[ms]",duration="Elapsed=s, wall[x]"[s],cpu=cpu',
        {"id": "Job, number", "arrival": "Submit, local[ms]", "duration": "Elapsed=s, wall[x]", "cpu": "cpu"},
    ):
        jobs, _ = read_text(text, map=map)
        assert jobs.id.tolist() == ["A", "B"]
        assert jobs.arrival.tolist() == [1.5, 2.5]
        assert jobs.duration.tolist() == [2, 4]
    with pytest.raises(UserError, match="a quote that isn't closed"):
        read_text(text, map='id="Job, number,arrival=x')
