"""The Kubernetes manifests of a training job: valid by the published schemas, naming the right cluster."""

import re
import subprocess

import kubernetes_validate
import pytest
from rendered import documents, environment, module

from schedrl.launch.distributed.cluster import cluster_of
from schedrl.launch.plan import read_plan
from schedrl.launch.settings import LaunchSettings

VERSIONS = ("1.29", "1.33")


@pytest.fixture(scope="module")
def render(root):
    return module(root, "render")


@pytest.fixture(scope="module")
def entrypoint(root):
    return module(root, "entrypoint")


CHANGES = [(), ("workers=5", "gpus=1", "storage_class=fast", "arguments=--algo pg --seed 3")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("changes", CHANGES)
def test_valid_by_the_published_schemas(changes, version, render):
    found = documents(render, *changes)
    assert set(found) == {"PersistentVolumeClaim", "Service", "NetworkPolicy", "PodDisruptionBudget", "Job"}
    for part in found.values():
        kubernetes_validate.validate(part, version, strict=True)


def test_a_misspelt_field_would_be_found(render):
    job = documents(render)["Job"]
    job["spec"]["completionsMode"] = "Indexed"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[-1], strict=True)


def test_what_the_schemas_do_not_know(render):
    parts = documents(render, "workers=5")
    job, pod = parts["Job"]["spec"], parts["Job"]["spec"]["template"]["spec"]
    (trainer,) = pod["containers"]
    assert (job["completionMode"], job["completions"], job["parallelism"]) == ("Indexed", 5, 5)
    assert pod["restartPolicy"] == "Never"  # podFailurePolicy is refused with any other
    ignored = [rule["onExitCodes"] for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert {"containerName": trainer["name"], "operator": "In", "values": [42]} in ignored
    service = parts["Service"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["metadata"]["name"] == pod["subdomain"]
    assert service["spec"]["selector"] == {"job-name": parts["Job"]["metadata"]["name"]}
    assert parts["PodDisruptionBudget"]["spec"]["minAvailable"] == 4
    assert parts["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "schedrl-train"
    from schedrl.launch.distributed.supervisor import GRACE

    assert pod["terminationGracePeriodSeconds"] > GRACE


@pytest.mark.parametrize("change", ["worker=3", "workers", "workers=x", "workers=0", "gpus=2", "folder=/tmp"])
def test_mistakes_in_values_are_refused(change, render):
    with pytest.raises(SystemExit, match="error: "):
        render.manifests([change])


def test_the_entry_point_names_the_pods_of_the_job(render, entrypoint, tmp_path):
    for index in range(3):
        environ, arguments = environment(render, index, "workers=3", MODEL_DIR=str(tmp_path / "run"))
        cluster = cluster_of(LaunchSettings(), {"TF_CONFIG": entrypoint.tf_config(environ)})
        names = tuple(f"schedrl-train-{i}.schedrl-train:2222" for i in range(3))
        assert cluster == (names, (index,))
        line = entrypoint.command(environ, arguments)
        assert "--resume" not in line
        (tmp_path / "run" / "checkpoints").mkdir(parents=True, exist_ok=True)
    (tmp_path / "run" / "checkpoints" / "step_000000000001.npz").touch()
    assert "--resume" in entrypoint.command(environ, arguments)


def test_the_jobs_arguments_make_a_plan(render, entrypoint, tmp_path, monkeypatch):
    environ, arguments = environment(render, 0, MODEL_DIR=str(tmp_path / "run"))
    monkeypatch.setenv("TF_CONFIG", entrypoint.tf_config(environ))
    plan = read_plan(entrypoint.command(environ, arguments)[2:])
    assert (plan.launch.mode, plan.folder, plan.launch.start_timeout) == (
        "distributed",
        tmp_path / "run",
        600,
    )


@pytest.mark.parametrize(
    "change",
    [
        "name=a: b",
        "name=Night",
        "name=x\ny",
        "name=-a",
        f"name={'a' * 51}",
        "namespace=",
        "image=a b",
        'image="',
    ]
    + [
        "cpu=two",
        "memory=4 Gi",
        "storage=",
        "storage_class=a'b",
        "folder=/checkpoints",
        "folder=/checkpoints/..",
    ]
    + [
        'folder=/checkpoints/a"b',
        "port=80",
        "port=70000",
        "workers=1001",
        "backoff_limit=-1",
        "workers=" + "9" * 400,
    ]
    + ["arguments=--algo 'ppo", "gpus=1.5", "\x1b[31m=1"],
)
def test_no_value_breaks_the_yaml(change, render):
    with pytest.raises(SystemExit) as error:
        render.manifests([change])
    assert str(error.value).startswith("error: ")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("name", ["null", "true", "no", "y", "on", "e1"])
def test_words_that_yaml_takes_for_something_else_stay_names(name, render):
    parts = documents(
        render, f"name={name}", f"namespace={name}", f"storage_class={name}", "storage=10", "cpu=1"
    )
    assert parts["Job"]["metadata"] == {"name": name, "namespace": name}
    assert parts["PersistentVolumeClaim"]["spec"]["storageClassName"] == name
    for part in parts.values():
        kubernetes_validate.validate(part, VERSIONS[-1], strict=True)


def test_arguments_reach_the_launcher_as_they_are(render):
    (trainer,) = documents(render, """arguments=--model_dir "a: {b}" $(HOME) '#x'""")["Job"]["spec"][
        "template"
    ]["spec"]["containers"]
    assert trainer["args"] == ["--model_dir", "a: {b}", "$$(HOME)", "#x"]


@pytest.mark.parametrize("text", ["", "name = 3", "[", 'workers = "2"'])
def test_a_spoilt_file_of_values_is_refused(text, render, tmp_path, monkeypatch):
    good = (render.HERE / "values.toml").read_text()
    lines = [line for line in good.splitlines() if not text or not line.startswith(text.split(" ")[0])]
    (tmp_path / "values.toml").write_text("\n".join([*lines, text]) if text else "")
    monkeypatch.setattr(render, "HERE", tmp_path)
    with pytest.raises(SystemExit, match=r"^error: (values.toml|name|workers)"):
        render.values([])


def test_only_the_workers_reach_one_another(render):
    parts = documents(render, "name=night", "port=3333")
    policy, template = parts["NetworkPolicy"]["spec"], parts["Job"]["spec"]["template"]
    pods = {"podSelector": {"matchLabels": {"job-name": "night"}}}  # a label that a job gives its pods
    assert policy["podSelector"] == pods["podSelector"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == [{"from": [pods], "ports": [{"protocol": "TCP", "port": 3333}]}]
    to_pods, to_names = policy["egress"]
    assert to_pods == {"to": [pods], "ports": [{"protocol": "TCP", "port": 3333}]}
    assert {port["port"] for port in to_names["ports"]} == {53}
    assert template["spec"]["automountServiceAccountToken"] is False
    assert template["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (trainer,) = template["spec"]["containers"]
    assert trainer["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_image_is_built_of_what_is_named_by_hash(root):
    dockerfile = (root / "deploy" / "train" / "Dockerfile").read_text()
    assert re.search(r"^FROM \S+@sha256:[0-9a-f]{64}$", dockerfile, re.MULTILINE)
    assert "--require-hashes -r requirements.lock" in dockerfile


def test_the_lock_file_is_within_the_ranges(root):
    from packaging.requirements import Requirement

    locked = {}
    for block in re.split(r"\n(?=\S)", (root / "requirements.lock").read_text()):
        if not block.startswith("#"):
            one = Requirement(block.partition("\\")[0])
            assert "--hash=sha256:" in block, one
            locked.setdefault(one.name, []).append(next(iter(one.specifier)).version)
    wanted = [
        line for line in (root / "requirements.txt").read_text().splitlines() if line and line[0] != "#"
    ]
    for one in map(Requirement, wanted):
        assert locked.get(one.name), one
        assert all(one.specifier.contains(version) for version in locked[one.name]), one


def test_no_file_names_the_host_of_a_package_index(root):
    hosts = "|".join(
        (r"pypi\.org", r"pythonhosted\.org", r"download\.pytorch\.org", r"--(extra-)?index-url \S")
    )
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False)
    for name in listed.stdout.splitlines() or [
        "requirements.txt",
        "requirements-peer.txt",
        "requirements.lock",
    ]:
        if (root / name).suffix in (".txt", ".md", ".toml", ".lock", ".yaml", ".yml") or name == ".ci/run":
            found = re.search(hosts, (root / name).read_text(errors="replace"))
            assert not found, f"{name}: {found}"
