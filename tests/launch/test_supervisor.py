"""What supervisors do about workers that fail: on one host, and on several that share a folder."""

import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from left_over import free, wait_for

from schedrl.launch.distributed import children, generations, meeting, supervisor
from schedrl.launch.distributed.cluster import Cluster, cluster_of
from schedrl.launch.distributed.supervisor import Supervisor, network_for
from schedrl.launch.distributed.worker import LostContact, require_same_generation
from schedrl.launch.plan import read_plan
from schedrl.settings import UserError

PARTS = Path(__file__).parent / "acting_worker.py"


@pytest.fixture(autouse=True)
def acted(monkeypatch):
    monkeypatch.setattr(children, "COMMAND", (sys.executable, str(PARTS)))
    # A cause is waited for as long as a full machine may take; where there is none, tests set less.
    monkeypatch.setattr(supervisor, "SETTLE", 60.0)
    monkeypatch.delenv("TF_CONFIG", raising=False)


class Host:
    """One supervisor in a thread, as `launcher.py --mode distributed` on one host would run it."""

    def __init__(self, folder, *arguments):
        self.said, self.end, self.error = [], None, None
        line = [
            "--mode",
            "distributed",
            "--max_restarts",
            "3",
            "--model_dir",
            str(folder),
            *map(str, arguments),
        ]
        plan = read_plan(line)
        self.interrupts = SimpleNamespace(exit_code=0)
        progress = SimpleNamespace(say=self.said.append)
        cluster = cluster_of(plan.launch, {})
        self._network = network_for(plan, cluster)
        self._supervisor = Supervisor(plan, cluster, progress, self.interrupts, self._network)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self.end = self._supervisor.live()
        except Exception as error:
            self.error = error
        finally:
            self._network.close()

    def start(self):
        self._thread.start()
        return self

    def wait(self):
        self._thread.join(180)
        assert not self._thread.is_alive(), self.said
        return self


def prepare(folder, parts):
    folder.mkdir(exist_ok=True)
    (folder / "parts.json").write_text(json.dumps(parts))
    return folder


def spawned(tmp_path, parts, *arguments):
    return Host(prepare(tmp_path / "run", parts), "--spawn", 2, *arguments).start().wait()


def nothing_left(folder):
    """Check that no worker is left, not even a zombie, nor its port; return how many there were."""
    for path in folder.glob("started_*"):
        pid, _, config = path.read_text().partition(" ")
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
        for address in json.loads(config)["cluster"]["worker"]:
            wait_for(lambda address=address: free(address))
    return len(list(folder.glob("started_*")))


def test_all_done_ends_at_once(tmp_path):
    host = spawned(tmp_path, {})
    assert host.end is supervisor.ALL_DONE
    assert host.said == []
    assert nothing_left(tmp_path / "run") == 2


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"0": "lost", "1": "killed"}, "worker 1 was killed by SIGKILL"),
        ({"0": "killed", "1": "lost"}, "worker 0 was killed by SIGKILL"),
        ({"0": "lost", "1": "rests"}, "worker 1 does not answer any more"),
        ({"0": "broken", "1": "rests"}, "worker 0 ended with exit code 1"),
        ({"0": "lost", "1": "lost"}, "worker 0: lost contact with another worker"),
    ],
)
def test_a_failure_restarts_all_with_the_reason(parts, reason, tmp_path, monkeypatch):
    if "any more" in reason:
        monkeypatch.setattr(supervisor, "SETTLE", 1.0)
    host = spawned(tmp_path, {"1": parts})
    assert host.end is supervisor.ALL_DONE
    assert host.said == [f"{reason}; all workers go on from the beginning (restart 1 of 3)"]
    assert nothing_left(tmp_path / "run") == 4


def test_a_restart_takes_fresh_ports(tmp_path):
    spawned(tmp_path, {"1": {"1": "killed", "0": "lost"}})
    configs = [
        json.loads((tmp_path / "run" / f"started_{g}_0").read_text().partition(" ")[2]) for g in (1, 2)
    ]
    first, second = (set(config["cluster"]["worker"]) for config in configs)
    assert not first & second
    assert configs[0]["task"] == {"type": "worker", "index": 0}


def test_restarts_are_limited(tmp_path):
    parts = {str(generation): {"1": "killed", "0": "lost"} for generation in range(1, 9)}
    host = spawned(tmp_path, parts, "--max_restarts", 2)
    assert host.end.kind == generations.FINAL
    assert host.end.reason == "worker 1 was killed by SIGKILL; given up after 2 restarts"
    assert nothing_left(tmp_path / "run") == 6


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"0": "full disk", "1": "others' disk"}, "worker 0: can't write to x"),
        ({"0": "others' disk", "1": "full disk"}, "worker 1: can't write to x"),
        ({"0": "no number", "1": "rests"}, "worker 0: not a number"),
    ],
)
def test_what_would_fail_again_is_not_repeated(parts, reason, tmp_path):
    host = spawned(tmp_path, {"1": parts})
    assert host.end.kind == generations.FINAL
    assert host.end.reason.startswith(reason)
    assert nothing_left(tmp_path / "run") == 2


def test_a_worker_that_never_comes_up_is_replaced(tmp_path):
    # The second generation must come up in that time, too: more than a full machine needs.
    host = spawned(tmp_path, {"1": {"1": "never up"}}, "--start_timeout", 15)
    assert host.end is supervisor.ALL_DONE
    assert "have not found each other within 15 s" in host.said[0]
    assert nothing_left(tmp_path / "run") == 4


def test_a_worker_that_was_asked_to_stop_stops_all(tmp_path):
    host = spawned(tmp_path, {"1": {"0": "asked", "1": "asked"}})
    assert host.end.kind == generations.STOPPED
    assert nothing_left(tmp_path / "run") == 2


def test_a_worker_that_ends_by_sigterm_before_the_training_stops_all(tmp_path):
    folder = prepare(tmp_path / "run", {"1": {"0": "never up", "1": "asked early"}})
    host = Host(folder, "--spawn", 2).start()
    wait_for(lambda: len(list(folder.glob("started_*"))) == 2)
    os.kill(int((folder / "started_1_1").read_text().split()[0]), signal.SIGTERM)
    assert host.wait().end.kind == generations.STOPPED
    assert nothing_left(folder) == 2


@pytest.mark.parametrize("part", ["rests", "never up"])
def test_the_supervisors_own_signal_is_passed_on(part, tmp_path):
    folder = prepare(tmp_path / "run", {"1": {"0": part, "1": part}})
    host = Host(folder, "--spawn", 2).start()
    wait_for(lambda: len(list(folder.glob("started_*"))) == 2)
    time.sleep(0.3)  # one of them is up by now, on most machines; it must not matter
    host.interrupts.exit_code = 42
    assert host.wait().end.kind == generations.STOPPED
    assert nothing_left(folder) == 2


def test_workers_end_with_a_supervisor_that_is_killed(tmp_path, root):
    import subprocess

    folder = prepare(tmp_path / "run", {"1": {"0": "watchful", "1": "watchful"}})
    code = (
        "import sys, launcher; from schedrl.launch.distributed import children\n"
        f"children.COMMAND = (sys.executable, {str(PARTS)!r})\n"
        "launcher.main(sys.argv[1:])"
    )
    line = ["--mode", "distributed", "--spawn", "2", "--model_dir", str(folder)]
    host = subprocess.Popen([sys.executable, "-c", code, *line], cwd=root, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(list(folder.glob("started_*"))) == 2)
    finally:
        host.send_signal(signal.SIGKILL)
        host.wait()
    wait_for(lambda: not any(alive(path) for path in folder.glob("started_*")))
    config = json.loads((folder / "started_1_0").read_text().partition(" ")[2])
    for address in config["cluster"]["worker"]:
        wait_for(lambda address=address: free(address))


def alive(path):
    """Tell whether the process named in a file runs; a zombie (its new parent reaps it late) does not."""
    try:
        return (
            Path(f"/proc/{path.read_text().split()[0]}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False


# -- several hosts -------------------------------------------------------------------------------------------


def two_hosts(tmp_path, parts, *arguments, other_folder=None, other=()):
    folder = prepare(tmp_path / "run", parts)
    spec = ",".join(f"127.0.0.1:{port}" for port in meeting.free_ports(2))
    line = ["--cluster_spec", spec, "--listen", *arguments]
    first = Host(folder, *line, "--task_index", 0)
    return first, Host(other_folder or folder, *line, "--task_index", 1, *other)


def test_hosts_restart_together_under_a_new_generation(tmp_path):
    hosts = two_hosts(tmp_path, {"1": {"0": "lost", "1": "killed"}})
    for host in hosts:
        host.start()
    for host in hosts:
        assert host.wait().end is supervisor.ALL_DONE
        assert host.said == [
            "worker 1 was killed by SIGKILL; all workers go on from the beginning (restart 1 of 3)"
        ]
    assert nothing_left(tmp_path / "run") == 4


def test_a_frozen_worker_on_another_host_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "SETTLE", 1.0)
    hosts = two_hosts(tmp_path, {"1": {"0": "lost", "1": "rests"}})
    for host in hosts:
        host.start()
    for host in hosts:
        assert host.wait().end is supervisor.ALL_DONE
    assert nothing_left(tmp_path / "run") == 4


def test_a_supervisor_that_is_started_anew_takes_all_to_the_next_generation(tmp_path):
    first, second = two_hosts(tmp_path, {"1": {"0": "rests"}})
    folder, cluster = tmp_path / "run", second._supervisor.cluster
    # What worker 1's supervisor left when its host was lost: an entry of its own.
    generations.Generation(folder, 1).enter(
        1, cluster.addresses[1], meeting.digest_of(second._supervisor.plan, cluster)
    )
    first.start()
    wait_for(lambda: (folder / "started_1_0").exists())
    second.start()
    for host in (first, second):
        assert host.wait().end is supervisor.ALL_DONE
    assert "worker 1 was started anew" in first.said[0]
    assert (folder / "started_2_1").exists()
    assert nothing_left(folder) == 3


def test_a_worker_that_is_started_twice_leaves_the_run_alone(tmp_path):
    first, second = two_hosts(tmp_path, {"1": {"0": "rests", "1": "rests"}})
    for host in (first, second):
        host.start()
    wait_for(lambda: len(list((tmp_path / "run").glob("started_*"))) == 2)
    spec = ",".join(second._supervisor.cluster.addresses)
    twin = Host(tmp_path / "run", "--cluster_spec", spec, "--task_index", 1, "--listen").start().wait()
    assert "another program is there" in str(twin.error)
    first.interrupts.exit_code = 42
    for host in (first, second):
        assert host.wait().end.kind == generations.STOPPED
        assert host.said == []


def test_one_host_that_is_asked_to_stop_stops_all(tmp_path):
    hosts = two_hosts(tmp_path, {"1": {"0": "rests", "1": "rests"}})
    for host in hosts:
        host.start()
    wait_for(lambda: len(list((tmp_path / "run").glob("started_*"))) == 2)
    hosts[1].interrupts.exit_code = 42
    for host in hosts:
        assert host.wait().end.kind == generations.STOPPED
    assert nothing_left(tmp_path / "run") == 2


def test_a_missing_host_is_named_after_the_time_out(tmp_path):
    host, missing = two_hosts(tmp_path, {}, "--start_timeout", 1)
    host.start().wait()
    assert host.end.kind == generations.FINAL
    address = missing._supervisor.cluster.addresses[1]
    assert host.end.reason.startswith(f"worker 1 at {address} did not come within 1 s")
    assert nothing_left(tmp_path / "run") == 0


def test_a_folder_that_is_not_shared_is_detected(tmp_path, monkeypatch):
    monkeypatch.setattr(meeting, "SETTLE", 1.0)
    other = prepare(tmp_path / "other", {})
    hosts = two_hosts(tmp_path, {}, "--start_timeout", 60, other_folder=other)
    for host in hosts:
        host.start()
    wait_for(lambda: any(host.error for host in hosts))  # the other one's then stands alone
    for host in hosts:
        host.interrupts.exit_code = 42
    errors = [str(host.wait().error) for host in hosts]
    assert any("--model_dir must be one folder that all hosts share" in error for error in errors)
    assert not list(tmp_path.glob("*/started_*"))


@pytest.mark.parametrize("other", [("--learning_rate", 0.5), ("--checkpoint_every", 1000)])
def test_hosts_with_different_settings_are_refused(other, tmp_path, monkeypatch):
    monkeypatch.setattr(meeting, "SETTLE", 1.0)
    hosts = two_hosts(tmp_path, {}, "--start_timeout", 60, other=other)
    for host in hosts:
        host.start()
    for host in hosts:  # one of them finds it, and tells the other
        host.wait()
        refused = isinstance(host.error, UserError) or host.end.kind == generations.UNFIT
        assert refused, host.end
        assert "other settings" in str(host.error or host.end.reason)


def test_an_address_in_use_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = ["--cluster_spec", f"{address},127.0.0.1:1", "--task_index", 0, "--listen"]
        host = Host(prepare(tmp_path / "run", {}), *line).start().wait()
    assert isinstance(host.error, UserError)
    assert f"can't listen at {address}" in str(host.error)


def test_a_worker_of_another_generation_is_not_learned_with():
    require_same_generation([[2.0, 7.0], [2.0, 7.0]], [2, 7])
    for other in ([1.0, 7.0], [2.0, 6.0]):  # an earlier generation; one of the same number, drawn anew
        with pytest.raises(LostContact, match="worker 1 is of generation"):
            require_same_generation([[2.0, 7.0], other], [2, 7])


def test_the_first_reason_counts(tmp_path):
    generation = generations.Generation(tmp_path, 1)
    generation.enter(0, "a:1", "x")
    generation.end(generations.FAILED, "first")
    generation.end(generations.FINAL, "second")
    assert generation.ended() == (generations.FAILED, "first")
    assert generations.next_generation(tmp_path, (0,)).number == 2


# -- plans that can't be distributed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--algo a3c --spawn 2", "asynchronous by definition.*--mode local"),
        ("--algo ppo --spawn 3", "num_envs is 256, which 3 workers can't divide"),
        ("--algo pg --spawn 16", "episodes_per_sequence"),
        ("--algo ppo --spawn 2 --xla True", "--xla"),
        ("--algo ppo --spawn 2 --profile", "--profile"),
        ("--algo ppo --spawn 2 --num_workers 2", "num_workers"),
        ("--algo ppo --cluster_spec a:1,b:1 --task_index 0", "--model_dir"),
    ],
)
def test_refused_plans(line, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        read_plan(["--mode", "distributed", *line.split()])


def test_shares_divide_totals_and_draw_other_jobs():
    from schedrl.launch.distributed.shares import share_of

    plan = read_plan(["--mode", "distributed", "--spawn", "2", "--algo", "ddpg"])
    shares = [share_of(plan, index, 2) for index in range(2)]
    for name in plan.algorithm.divided:
        assert getattr(shares[0].algorithm, name) * 2 == getattr(plan.algorithm, name)
    assert shares[0].launch.seed == plan.launch.seed != shares[1].launch.seed
    assert share_of(plan, 0, 1) == plan


def test_two_workers_meet_on_free_ports_of_this_host(tmp_path):
    plan = read_plan(["--mode", "distributed", "--spawn", "2", "--model_dir", str(tmp_path / "run")])
    met = meeting.meet(generations.Generation(tmp_path, 1), Cluster(("", ""), (0, 1)), plan, lambda: False)
    assert len({entry["address"] for entry in met}) == 2
