"""`compare_algorithms.py --trace F --cluster F --policies ...`: the operator's command."""

import csv
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fences import ROOT

import compare_algorithms
import job_distribution
from schedrl.evaluation.cluster import plots, report
from schedrl.launch.replay import carry_out
from schedrl.launch.replay.request import is_replay, read_request
from schedrl.launch.replay.settings import DOZEN
from schedrl.launch.speaker import Speaker
from schedrl.workload import Workload
from schedrl.workload.writers import write_trace

CLUSTER = "name,count,cpu,memory,gpu\nserver,4,8,32,2\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.csv").write_text(CLUSTER)
    flags = "generate --distribution bursty --load 0.9 --num_jobs 300 --out jobs.csv"
    assert job_distribution.main(flags.split()) == 0
    return tmp_path


@pytest.fixture
def quick(monkeypatch):
    """Pictures have tests of their own."""
    monkeypatch.setattr(plots, "save", lambda path, *_: (path.write_bytes(b""), path)[1])
    monkeypatch.setattr(report, "write_html", lambda path, *_: path.write_text("page"))


def replay(*words):
    base = ["--trace", "jobs.csv", "--cluster", "cluster.csv", "--output_dir", "out"]
    return compare_algorithms.main([*base, *map(str, words)])


def rows(folder):
    return list(csv.DictReader((folder / "out" / report.CSV).open(encoding="utf-8")))


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("--trace a --cluster b", True),
        ("--trace a --policies sjf", True),
        ("--cluster=b --trace a", True),
        ("--trace a", False),
        ("--env simple_cluster --cluster b", False),
        ("--algorithms PPO --cluster b", False),
    ],
)
def test_which_command_lines_are_replays(line, asked):
    assert is_replay(line.split()) is asked


def test_one_command_compares_a_dozen_heuristics_and_draws_the_heat_map(here, capsys):
    assert replay() == 0
    assert len(DOZEN) == len(set(DOZEN)) == 12
    assert len(rows(here)) == 12
    assert all(float(row["decision_latency"]) > 0 for row in rows(here))
    names = {path.name for path in (here / "out").iterdir()}
    assert names == {
        report.HTML, report.CSV, report.JSON, report.HEAT, report.CDF, report.GANTT, report.JOBS,
    }  # fmt: skip
    out = capsys.readouterr().out
    assert "12/12 sjf+best_fit+hold (untuned)" in out
    assert "note: sjf+best_fit+hold (untuned): the default numbers (long_from 60, keep 0.05" in out
    assert "4 machines with 32 cpu [cores]" in out


def test_load_scales_arrivals_and_the_first_policy_is_the_measure(here, quick, capsys):
    assert replay("--policies", "fifo+strict,sjf+best_fit", "--load", 1.2) == 0
    out = capsys.readouterr().out
    assert "cpu 120.0%" in out
    assert [row["policy"] for row in rows(here)] == ["fifo+first_fit+strict", "sjf+best_fit+skip"]
    assert "against" in out


def test_jobs_that_never_fit_are_listed_and_counted(here, quick, capsys):
    workload = Workload(
        [0.0, 1, 2, 3],
        [5.0, 5, 5, 5],
        [[1.0, 1, 0], [9, 1, 0], [1, 1, 1.5], [8, 32, 2]],
        resources=["cpu", "memory", "gpu"],
        time_unit="s",
        instances=[1, 1, 1, 5],
    )
    write_trace(workload, "jobs.csv")
    assert replay("--policies", "fifo") == 0
    out = capsys.readouterr().out
    assert "3 jobs can never run here and are rejected" in out
    assert "job 1: 1 x (9 cpu, 1 memory): one instance is larger than every machine" in out
    assert rows(here)[0]["rejected"] == "3"
    assert rows(here)[0]["acceptance_rate"] == "0.25"
    assert next(line for line in out.splitlines() if line.startswith("policy ")).endswith(
        "rejected  accepted"
    )
    table = list(csv.DictReader((here / "out" / report.JOBS).open(encoding="utf-8")))
    assert [row["status"] for row in table] == ["finished", "rejected", "rejected", "rejected"]


def test_a_load_counts_only_jobs_that_can_run(here, quick, capsys):
    workload = Workload(
        np.arange(10.0), np.full(10, 4.0), [[1.0]] * 9 + [[1000.0]], resources=["cpu"], time_unit="s"
    )
    write_trace(workload, "jobs.csv")
    assert replay("--policies", "fifo", "--load", 0.5) == 0
    assert "load: cpu 50.0%" in capsys.readouterr().out


def test_an_idle_cluster_says_that_it_cannot_tell_and_what_to_give(here, quick, capsys):
    assert replay("--policies", "fifo,sjf", "--load", 0.001) == 0
    out = capsys.readouterr().out
    assert "hardly a queue. For a queue: --load" in out
    assert "can't tell policies apart" in out
    suggested = out.split("For a queue: --load ")[1].split()[0]
    assert replay("--policies", "fifo,sjf", "--load", suggested) == 0
    assert "can't tell policies apart" not in capsys.readouterr().out


def advice(out):
    """Return the flags that a replay advises for a queue."""
    held = re.search(r"(?:For a queue:|a part of it:) ((?: ?--\w+ \S+)+)", out)
    return held[1].split() if held else []


@pytest.mark.parametrize("kind", ["nearly together", "large ones apart", "alike", "one large, few small"])
def test_flags_that_are_advised_are_never_refused(here, quick, capsys, kind):
    arrival, cpu = {
        "nearly together": ([0.0] * 60 + [1e-9], [1.0] * 61),
        "large ones apart": ([0.0] * 4 + [1e6, 2e6], [1.0] * 4 + [8.0] * 2),
        "alike": (np.arange(20.0) * 1000, [2.0] * 20),
        "one large, few small": ([0.0, 0.0, 0.0, 500.0], [1.0, 1.0, 1.0, 16.0]),
    }[kind]
    jobs = Workload(arrival, [5.0] * len(cpu), np.array(cpu)[:, None], resources=["cpu"], time_unit="s")
    write_trace(jobs, "jobs.csv")
    lines = [f'[[machines]]\nname = "small{n}"\ncpu = 8\n' for n in range(9)]
    Path("odd.toml").write_text("".join(lines) + '[[machines]]\nname = "large"\ncpu = 16\n')
    for cluster in ("odd.toml", None):
        call = ["--trace", "jobs.csv", "--output_dir", "out", "--policies", "fifo"]
        call += ["--cluster", cluster] if cluster else ["--capacity", "cpu=64"]
        assert compare_algorithms.main(call) == 0
        if flags := advice(capsys.readouterr().out):
            assert compare_algorithms.main([*call, *flags]) == 0
            capsys.readouterr()


def test_where_no_job_fits_the_capacity_that_was_given_this_is_named(here, quick, capsys):
    call = ["--trace", "jobs.csv", "--policies", "fifo", "--output_dir", "out"]
    assert compare_algorithms.main([*call, "--capacity", "cpu=0.01,memory=0.01,gpu=1"]) == 2
    assert "check --capacity" in capsys.readouterr().err


def test_without_a_cluster_the_trace_is_run_on_its_own_capacity(here, quick, capsys):
    assert compare_algorithms.main(["--trace", "jobs.csv", "--policies", "fifo", "--output_dir", "out"]) == 0
    assert "1 machine with 40 cpu" in capsys.readouterr().out


def test_the_per_job_table_can_be_left_out(here, quick):
    assert replay("--policies", "fifo", "--jobs_csv", "True") == 0
    assert (here / "out" / report.JOBS).exists()
    assert replay("--policies", "fifo", "--jobs_csv", "False") == 0
    assert not (here / "out" / report.JOBS).exists()


def test_a_part_of_the_machines(here, quick, capsys):
    assert replay("--policies", "fifo", "--num_machines", 2) == 0
    assert "2 machines with 16 cpu" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--policies", "sfj+best_fit"], "sjf"),
        (["--policies", "models/none"], "holds no trained model"),
        (["--policies", "sjf+fifo"], "two of one kind"),
        (["--policies", "xyzzy"], "unknown part of a rule 'xyzzy'; orders: fifo, sjf, "),
        (["--policies", "fifo", "--load", "0"], "load is 0"),
        (["--policies", "fifo", "--num_machines", "9"], "the cluster has 4"),
        (["--policies", "fifo", "--algorithms", "PPO"], "--algorithms is for training"),
        (["--policies", "fifo", "--cluster", "no.toml"], "no.toml"),
        (["--policies", "fifo", "--trace", "no.csv"], "no.csv"),
        (["--policies", "fifo", "--tau", "0"], "tau is 0"),
        (["--policies", "fifo", "--tau", "1e300"], "tau is 1e+300"),
        (["--policies", "fifo", "--visible_jobs", "99999999999999999999"], "at most 2147483647"),
        (["--policies", "fifo", "--capacity", "cpu=9"], "--capacity has no effect beside --cluster"),
        (["--policies", "fifo", "--output_dir", ""], "--output_dir is empty"),
        (["--policies", "fifo", "--cluster", ""], "can't read the cluster"),
        (["--policies", "fifo", "--tune_hold"], "nothing to tune"),
        (["--policies", "hold", "--tune_hold"], "100 jobs of the 300 needed"),
        (["--policies", "fifo", "--output_dir", "jobs.csv"], "is a file"),
    ],
)
def test_bad_input_ends_with_2_and_leaves_nothing(here, capsys, words, part):
    assert replay(*words) == 2
    assert part in capsys.readouterr().err
    assert not (here / "out").exists()


def test_hold_is_tuned_on_the_first_third_and_all_are_measured_on_the_rest(here, quick, capsys):
    flags = "generate --distribution bursty --load 0.9 --num_jobs 900 --out jobs.csv"
    assert job_distribution.main(flags.split()) == 0
    assert replay("--policies", "sjf+best_fit+easy,hold", "--tune_hold") == 0
    out = capsys.readouterr().out
    assert "all policies are compared on the 600 jobs after them" in out
    assert "note: sjf+best_fit+hold: tuned on the first 300 jobs (long_from " in out
    assert [row["nb_jobs"] for row in rows(here)] == ["600", "600"]
    assert [row["policy"] for row in rows(here)] == ["sjf+best_fit+easy", "sjf+best_fit+hold"]


def test_a_policy_that_plays_for_long_says_so(here, quick, capsys, monkeypatch):
    said = "1/1 fifo+first_fit+skip: still playing"
    assert replay("--policies", "fifo") == 0
    assert said not in capsys.readouterr().out
    player = carry_out._player

    def slow(*given):
        def play(name):
            until = time.monotonic() + 60
            while said not in "".join(heard) and time.monotonic() < until:
                time.sleep(0.02)
                heard.append(capsys.readouterr().out)
            return player(*given)(name)

        return play

    heard = []
    monkeypatch.setattr(carry_out, "_player", slow)
    monkeypatch.setattr(carry_out, "LASTS", 0.1)
    assert replay("--policies", "fifo") == 0
    assert said in "".join(heard)


def until_said(capsys, words, *what):
    """Return the lines said while something waits until `words` are among them, on a full machine too."""
    said, until = "", time.monotonic() + 60
    with Speaker().while_doing(*what, every=0.02):
        while words not in said and time.monotonic() < until:
            time.sleep(0.02)
            said += capsys.readouterr().out
    return said.splitlines()


def test_the_wait_for_the_compiler_is_said_before_and_while(capsys):
    lines = until_said(capsys, "still", "compiling", "still compiling")
    assert lines[0].endswith("] compiling")
    assert lines[1].endswith("] still compiling")


@pytest.mark.parametrize("instances", [4_000_000_000, 10**17])
def test_a_gang_of_billions_is_rejected_and_takes_no_room(here, quick, capsys, instances):
    workload = Workload(
        [0.0, 1], [5.0, 5], [[1.0], [1]], resources=["cpu"], time_unit="s", instances=[instances, 2]
    )
    write_trace(workload, "jobs.csv")
    assert replay("--policies", "fifo,sjf+easy") == 0
    assert f"job 0: {instances} x (1 cpu): its instances fit one by one" in capsys.readouterr().out
    assert [(row["rejected"], row["finished"]) for row in rows(here)] == [("1", "1")] * 2


def test_names_that_do_not_match_are_said(here, quick, capsys):
    (here / "cluster.csv").write_text("name,count,cpus,memory,gpu\nserver,4,8,32,2\n")
    assert replay("--policies", "fifo") == 2
    error = capsys.readouterr().err
    assert "4 machines with 32 cpus [units]" in error
    assert "no machine has cpu, which jobs ask for; no job asks for cpus, which machines have" in error
    (here / "cluster.csv").write_text("name,count,cpu,memory,gpu,tpu\nserver,4,8,32,0,1\n")
    assert replay("--policies", "fifo") == 0
    out = capsys.readouterr().out
    assert "note: no machine has gpu, which jobs ask for" in out
    assert "note: no job asks for tpu, which machines have" in out


def test_jobs_of_which_none_fits_are_an_error(here, capsys):
    (here / "cluster.csv").write_text("name,cpu\nsmall,8\n")
    assert replay("--policies", "fifo") == 2
    error = capsys.readouterr().err
    assert "no job of the trace can ever run" in error
    assert "asks for a resource that no machine has" in error
    assert "1 machine with 8 cpu [cores]" in error


def test_help_is_there_at_once_and_nothing_needs_tensorflow(here):
    code = (
        "import sys, compare_algorithms as c\n"
        "try: c.main(['--trace', 'a', '--cluster', 'b', '--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'tensorflow', 'numba', 'pandas'} & set(sys.modules), sys.modules.keys()\n"
        "c.main('--trace jobs.csv --cluster cluster.csv --policies fifo --output_dir out'.split())\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "--policies" in done.stdout


def test_ten_minutes_with_openb(shared_dir, tmp_path, quick, capsys):
    traces = shared_dir / "traces"
    words = ["--trace", traces / "openb_pod_list_default.first1000.csv"]
    words += ["--cluster", traces / "openb_node_list_gpu_node.csv", "--output_dir", tmp_path]
    words += ["--policies", "fifo,sjf+best_fit", "--load"]
    assert compare_algorithms.main([str(word) for word in (*words, 1.0)]) == 0
    out = capsys.readouterr().out
    assert "1,213 machines" in out
    assert "can't tell policies apart" in out
    flags = out.split("it fills a part of it: ")[1].split("\n")[0].split()
    assert compare_algorithms.main([str(word) for word in (*words, 1.0, *flags)]) == 0
    found = json.loads((tmp_path / report.JSON).read_text(encoding="utf-8"))
    means = [row["mean"] for row in found["rows"]]
    assert means[1] < means[0]
    assert not any("can't tell" in line for line in found["warnings"])


def test_the_order_of_policies_is_kept_and_repeats_are_dropped(here):
    words = ["--trace", "jobs.csv", "--policies", "sjf,first_fit+sjf,fifo"]
    assert read_request(words).rules == ("sjf+first_fit+skip", "fifo+first_fit+skip")
