"""TF_CONFIG, --cluster_spec, --spawn: what is understood; mistakes are refused before TensorFlow starts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from schedrl.launch.distributed.cluster import cluster_of
from schedrl.launch.settings import LaunchSettings
from schedrl.settings import UserError

CASES = Path(__file__).parent / "tf_config"
EXPECTED = json.loads((CASES / "expected.json").read_text())["expected"]
FILES = [name for name in EXPECTED if (CASES / name).exists()]
TWO = ("10.0.0.1:2000", "10.0.0.2:2000")


def of_text(text, **settings):
    return cluster_of(LaunchSettings(mode="distributed", **settings), {"TF_CONFIG": text} if text else {})


def config(cluster, kind="worker", index=0):
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize("name", FILES)
def test_cases_of_tf_config(name):
    text = (CASES / name).read_text()
    if EXPECTED[name] == "accepted":
        assert of_text(text) == (("127.0.0.1:20001", "127.0.0.1:20002"), (0,))
        return
    with pytest.raises(UserError) as error:
        of_text(text)
    if "names index 3 and 1 worker" in EXPECTED[name]:
        assert "index" in str(error.value)
        assert "is 3, but there is 1 worker" in str(error.value)


def test_every_case_is_here():
    assert len(FILES) == 5


@pytest.mark.parametrize("name", [name for name in FILES if EXPECTED[name] != "accepted"])
def test_refused_before_tensorflow_is_imported(name, root, tmp_path):
    code = (
        "import sys, launcher\n"
        "code = launcher.main(['--mode', 'distributed', '--model_dir', 'run'])\n"
        "assert 'tensorflow' not in sys.modules\n"
        "sys.exit(code)"
    )
    environ = {"PATH": "/usr/bin", "PYTHONPATH": str(root), "TF_CONFIG": (CASES / name).read_text()}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "TF_CONFIG" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_chief_comes_first_and_counts():
    cluster = {"chief": [TWO[0]], "worker": [TWO[1]]}
    assert of_text(config(cluster, "chief")) == (TWO, (0,))
    assert of_text(config(cluster, "worker")) == (TWO, (1,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no 'cluster'"),
        ("{}", "no 'cluster'"),
        ('{"cluster": {"worker": ["a:1"]}}', "no 'task'"),
        (config({}), "of type 'worker'"),
        (config({"worker": []}), "0 workers"),
        (config({"worker": "a:1"}), "list"),
        (config({"worker": ["a:1"], "ps": ["b:1"]}), "parameter servers"),
        (config({"worker": ["a:1"], "evaluator": ["b:1"]}), "evaluation"),
        (config({"worker": ["a:1"], "workers": ["b:1"]}), "not known"),
        (config({"chief": ["a:1", "b:1"], "worker": ["c:1"]}), "2 chiefs"),
        (config({"chief": ["a:1"], "worker": ["a:1"]}), "both a:1"),
        (config({"worker": ["a:1"]}, index=-1), "is -1"),
        (config({"worker": ["a:1"]}, index="0"), "is '0'"),
        (config({"worker": ["a:1"]}, index=None), "is None|missing"),
        (config({"worker": ["a:1", "b:1"]}, index=True), "is True"),
        *((config({"worker": [address]}), "host:port") for address in ("a", "a:", ":1", "a:0", "a:65536", 7)),
        (config({"worker": ["http://a:1"]}), "host:port"),
    ],
)
def test_partial_and_contradictory_ones_are_refused(text, message):
    with pytest.raises(UserError, match=message):
        of_text(text)


def test_cluster_spec_means_the_same():
    assert of_text("", cluster_spec=TWO, task_index=1) == (TWO, (1,))
    both = of_text(config({"worker": TWO}, index=1), cluster_spec=TWO, task_index=1)
    assert both == (TWO, (1,))


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("", {}, "--cluster_spec"),
        ("", {"task_index": 0}, "--cluster_spec is missing"),
        ("", {"cluster_spec": TWO}, "--task_index 0"),
        ("", {"cluster_spec": TWO, "task_index": 2}, "--task_index is 2, but there are 2 workers"),
        ("", {"cluster_spec": ("a",), "task_index": 0}, "host:port"),
        (config({"worker": TWO}, index=1), {"cluster_spec": TWO, "task_index": 0}, "leave one out"),
        (config({"worker": TWO}), {"spawn": 2}, "TF_CONFIG names a cluster"),
        ("", {"cluster_spec": TWO, "task_index": 0, "spawn": 2}, "--cluster_spec names a cluster"),
    ],
)
def test_settings_that_contradict_are_refused(text, settings, message):
    with pytest.raises(UserError, match=message):
        of_text(text, **settings)


def test_spawn_takes_all_workers():
    cluster = of_text("", spawn=3)
    assert (cluster.size, cluster.own, cluster.spawned) == (3, (0, 1, 2), True)


def test_a_settings_file_may_name_the_cluster(tmp_path):
    from schedrl.settings import Parser, add_arguments, resolve

    path = tmp_path / "run.toml"
    path.write_text('mode = "distributed"\nCLUSTER_SPEC = ["a:1", "b:1"]\nTASK_INDEX = 1\n')
    parser = Parser()
    add_arguments(parser, LaunchSettings)
    launch = resolve([LaunchSettings], parser.parse_args(["--config", str(path)]))[LaunchSettings]
    assert cluster_of(launch, {}) == (("a:1", "b:1"), (1,))
