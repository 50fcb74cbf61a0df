"""The Kubernetes manifests of a training job: valid by the published schemas, naming the right cluster."""

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
    assert set(found) == {"PersistentVolumeClaim", "Service", "PodDisruptionBudget", "Job"}
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
