import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload.machines import read_machines
from schedrl.workload.readers import read_trace

HEADER = "sn,cpu_milli,memory_mib,gpu,model"


@pytest.fixture
def machines(tmp_path):
    def of(text):
        path = tmp_path / "nodes.csv"
        path.write_text(text)
        return read_machines(path)

    return of


def test_machines_in_cores_gib_and_gpus(machines):
    found = machines(f"{HEADER}\nb,64000,262144,2,P100\na,500,512,0,\n")
    assert found.name.tolist() == ["b", "a"]
    assert found.capacity.tolist() == [[64, 256, 2], [0.5, 0.5, 0]]
    assert found.model.tolist() == ["P100", ""]
    assert [tuple(r) for r in found.resources] == [("cpu", "cores"), ("memory", "GiB"), ("gpu", "gpus")]
    assert len(found) == 2
    with pytest.raises(ValueError, match="read-only"):
        found.capacity[0, 0] = 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: no machines"),
        (f"{HEADER}\n", "no jobs|no machines"),
        ("sn,gpu,model\na,1,T4\n", "lacks the columns cpu_milli, memory_mib;"),
        (f"{HEADER}\na,many,1024,1,T4\n", "line 2: not_numeric .*cpu_milli is 'many'"),
        (f"{HEADER}\na,-5,1024,1,T4\n", r"machine 'a' has \[-0.005, 1.0, 1.0\]"),
        (f"{HEADER}\na,,1024,1,T4\n", r"machine 'a' has \[nan, 1.0, 1.0\]"),
        (f"{HEADER}\na,0,0,0,T4\n", "machine 'a'"),
        (f"{HEADER}\na,1,1,1,T4\na,1,1,1,T4\n", "names of their own, found 'a' twice"),
        (f"{HEADER}\n,1,1,1,T4\n", "names of their own"),
    ],
)
def test_a_machine_that_makes_no_sense_is_an_error(machines, text, message):
    with pytest.raises(UserError, match=message):
        machines(text)


def test_the_real_list(shared_dir):
    path = shared_dir / "traces" / "openb_node_list_gpu_node.csv"
    found = read_machines(path)
    assert len(found) == 1213
    assert found.capacity.sum(0).tolist() == [107018, 492020, 6212]
    assert set(found.model) >= {"P100", "T4", "G2", "V100M32"}
    assert not np.isnan(found.capacity).any()
    with pytest.raises(UserError, match="it has no jobs; they are in openb_pod_list"):
        read_trace(path)
