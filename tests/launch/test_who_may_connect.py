"""Whoever reaches a port of TensorFlow's workers can read and write the user's files: who can reach them?"""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from left_over import wait_for

from schedrl.launch.distributed import meeting, namespace, supervisor
from schedrl.launch.distributed.cluster import cluster_of, is_loopback
from schedrl.launch.plan import read_plan
from schedrl.settings import UserError

LISTENS = "0A"
"""The state of a listening socket in /proc/net/tcp."""


def listening(process="self"):
    """Return the (address, port) pairs at which anybody listens in the network of a process."""
    found = set()
    for name, size in (("tcp", 8), ("tcp6", 32)):
        for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            if state == LISTENS:
                found.add((local[:size], int(local[size + 1 :], 16)))
    return found


def network_or_skip():
    try:
        return namespace.Network(private=True)
    except OSError as error:
        pytest.skip(f"no network of their own can be made here: {error}")


def plan_of(folder, *arguments):
    return read_plan(["--mode", "distributed", "--model_dir", str(folder), *arguments])


def test_nobody_reaches_a_port_in_a_network_of_their_own():
    inside = (
        "import os, socket, sys, time; from schedrl.launch.distributed import namespace\n"
        "namespace.enter([int(text) for text in sys.argv[1:]])\n"
        "server = socket.create_server(('', 0)); port = server.getsockname()[1]\n"
        "socket.create_connection(('127.0.0.1', port))\n"  # the workers find one another
        "print(port, flush=True); time.sleep(60)"
    )
    with contextlib.closing(network_or_skip()) as network:
        command = [sys.executable, "-c", inside, *map(str, network.descriptors)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=network.descriptors) as worker:
            port = int(worker.stdout.readline())
            assert port not in {other for _, other in listening()}
            assert meeting.unreachable([f"127.0.0.1:{port}"])
            assert port in {other for _, other in listening(worker.pid)}
            worker.kill()
        held = list(network.descriptors)
    for descriptor in held:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--listen"]])
def test_the_workers_of_a_run_listen_where_they_should(arguments, root, tmp_path):
    if not arguments:
        network_or_skip().close()
    command = [sys.executable, root / "launcher.py", "--mode", "distributed", "--spawn", "2", *arguments]
    command += ["--model_dir", tmp_path / "run", "--num_envs", "8", "--total_steps", "10000000", "--no_eval"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            said = ""
            while "are connected" not in said:
                said += run.stdout.readline()
                assert run.poll() is None, said
            entries = [entry for _, entry in sorted(entries_of(tmp_path / "run").items())]
            ports = {int(entry.rpartition(":")[2]) for entry in entries}
            outside = {port for _, port in listening()}
            assert len(ports) == 2
            assert ports <= outside if arguments else not ports & outside
            assert ("can read and write your files" in said) == bool(arguments)
        finally:
            run.terminate()
            run.communicate(timeout=200)


def entries_of(folder):
    import json

    files = folder.glob("cluster/generation_*/worker_*.json")
    return {path.name: json.loads(path.read_text())["address"] for path in files}


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "[::1]"])
def test_supervisors_on_the_loopback_meet_there_alone(address):
    (port,) = meeting.free_ports(1)
    try:
        with meeting.answering(f"{address}:{port}") as token:
            wait_for(lambda: meeting.ask(f"{address}:{port}") == token)
            hosts = {host for host, other in listening() if other == port}
    except UserError:
        if "::1" not in address:
            raise
        pytest.skip("no IPv6 here")
    assert hosts
    assert not any(set(host) == {"0"} for host in hosts)  # which means: all interfaces


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:1", True), ("127.9.9.9:1", True), ("localhost:1", True), ("[::1]:1", True)]
    + [("10.0.0.1:1", False), ("host0:1", False), ("train-0.train:2222", False), ("0.0.0.0:1", False)],
)
def test_what_is_the_loopback(address, expected):
    assert is_loopback(address) is expected


def test_named_workers_on_this_host_need_to_be_allowed(tmp_path):
    line = ["--cluster_spec", "127.0.0.1:2222,localhost:2223", "--task_index", "0"]
    plan = plan_of(tmp_path / "run", *line)
    with pytest.raises(UserError, match=r"read and write your files.*--spawn 2.*--listen"):
        supervisor.network_for(plan, cluster_of(plan.launch, {}))
    plan = plan_of(tmp_path / "run", *line, "--listen")
    assert supervisor.network_for(plan, cluster_of(plan.launch, {})).descriptors == []


def test_where_no_network_can_be_made_a_run_is_refused_and_writes_nothing(tmp_path, monkeypatch, capsys):
    import launcher

    monkeypatch.setattr(namespace, "__file__", "/dev/null")  # ends at once, as where the kernel forbids it
    line = ["--mode", "distributed", "--spawn", "2", "--model_dir", str(tmp_path / "run")]
    assert launcher.main(line) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert "--listen" in error
    assert not (tmp_path / "run").exists()


def test_several_hosts_are_told_what_their_ports_are(tmp_path):
    plan = plan_of(tmp_path / "run", "--cluster_spec", "10.0.0.1:2222,10.0.0.2:2222", "--task_index", "0")
    cluster = cluster_of(plan.launch, {})
    said = supervisor.described(cluster, supervisor.network_for(plan, cluster))
    assert "can read and write your files: let only the workers reach their ports" in said


def test_a_foreign_program_on_the_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match="another program is there"), meeting.answering(address):
            pass
