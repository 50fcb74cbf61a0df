"""Files whose jobs wait for others or name models, from reading them to the schedule and the lines said."""

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
from clusters import jobs as jobs_of

from schedrl.envs.simple_cluster import SimpleClusterEnv
from schedrl.envs.simple_cluster.jobs import Streamed, described
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.launch.replay.data import load_data
from schedrl.launch.replay.settings import ReplaySettings
from schedrl.sim.cluster import STATUS, simulate
from schedrl.sim.cluster.problem import REASONS
from schedrl.sim.cluster.schedule import check
from schedrl.workload.cluster_file import read_cluster
from schedrl.workload.constraint_lines import honoured_lines, pool_lines
from schedrl.workload.constraints import Allowed, Predecessors
from schedrl.workload.readers import read_trace
from schedrl.workload.transform import fitted, in_units, sample, split, window

CHAIN_CSV = """M1,1,j_1,1,Terminated,100,200,100,0.3
R2_1,1,j_1,1,Terminated,200,300,100,0.3
J3_2,1,j_1,1,Terminated,300,400,100,0.3
"""
CHAIN_SWF = """; MaxProcs: 8
1 0 0 1000 4 -1 -1 4 2000 -1 1 1 1 1 1 1 -1 -1
2 10 990 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 1 0
3 20 1180 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 2 100
"""
CIRCLE = """M7_Stg3,1,j_2,1,Terminated,100,200,100,0.3
M3,1,j_2,1,Terminated,300,400,100,0.3
M4_5,1,j_3,1,Terminated,100,150,100,0.3
R5_4,1,j_3,1,Terminated,100,150,100,0.3
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,T4\nn1,64000,262144,2,V100M32\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    "scheduled_time\n"
    "p0,1000,1024,2,1000,V100M32,LS,Running,0,100,0\n"
    "p1,1000,1024,2,1000,V100M32,LS,Running,0,100,0\n"
    "p9,1000,1024,1,1000,A100,LS,Running,0,100,0\n"
)
TOML = '[[machines]]\nname = "n"\ncpu = 8\nmemory = 1\n'
READING = {"time_zone": None, 
    "format": None, "map": None, "option": [], "encoding": None, "strict": False, "lenient": False,
    "capacity": None,
}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "chain.csv": CHAIN_CSV, "chain.swf": CHAIN_SWF, "circle.csv": CIRCLE, "nodes.csv": NODES,
        "pods.csv": PODS, "cluster.toml": TOML,
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def loaded(trace, cluster=None, **settings):
    return load_data(
        ReplaySettings(trace=trace, cluster=cluster, **settings), Namespace(file=trace, **READING)
    )


@pytest.mark.parametrize(
    ("trace", "cluster", "load"), [("chain.csv", "cluster.toml", 3), ("chain.swf", None, None)]
)
def test_a_chain_is_replayed_in_order(here, trace, cluster, load):
    data = loaded(trace, cluster, load=load)
    got = simulate(data.workload, data.machines, "fifo+first_fit+strict")
    assert (got.start[1:] >= got.finish[:-1]).all()
    assert any(line.startswith("2 of 3 jobs wait for others") for line in data.facts)
    if trace == "chain.swf":
        assert got.start.tolist() == [0, 1000, 1200]
        assert any("name a partition (1 different): left out" in line for line in data.facts)


def test_a_stage_is_no_task_and_circles_are_named(here):
    data = loaded("circle.csv", "cluster.toml")
    depends_on = dict(zip(data.workload.id, data.workload.extra["depends_on"], strict=True))
    assert depends_on["j_2/M7_Stg3"] == ""
    got = simulate(data.workload, data.machines)
    assert got.start[data.workload.id == "j_2/M7_Stg3"] == 100
    told = "\n".join(data.facts)
    assert "2 x it waits for a job that waits for it (a circle)" in told
    assert "job j_3/M4_5" in told
    assert "Stg" in told
    inspected = "\n".join(honoured_lines(read_trace("circle.csv")[0]))
    assert "2 of these can never run, as they wait in a circle: j_3/M4_5, j_3/R5_4" in inspected


def test_pods_run_on_their_models_only(here):
    data = loaded("pods.csv", "nodes.csv")
    got = simulate(data.workload, data.machines, "fifo+best_fit+skip")
    assert got.placed.machine.tolist() == [1, 1]
    assert got.start.tolist()[:2] == [0, 100]
    assert STATUS[got.status[2]] == "rejected"
    assert REASONS[got.reject_reason[2]] == "no machine has a model or name that it allows"
    told = "\n".join(data.facts)
    assert "3 of 3 jobs name the machines or models that will do; only these are used" in told
    assert "job p9: 1 x (1 cpu, 1 memory, 1 gpu): no machine has a model" in told


def test_where_no_machine_has_a_model_that_is_said(here):
    (here / "plain.csv").write_text("name,cpu,memory,gpu\na,64,256,2\n")
    data = loaded("pods.csv", "plain.csv")
    assert "left out, as no machine of this cluster has a model" in "\n".join(data.facts)
    assert (simulate(data.workload, data.machines).status == 2).all()


def test_any_csv_has_dependencies_and_machines_and_what_is_left_out_is_counted(here):
    (here / "own.csv").write_text(
        "id,submit,run,cpu,depends_on,think_time,allowed,max_instance_per_node,Queue\n"
        "a,0,5,1,,,n,2,short\nb,0,5,1,a,2,n|m,,\nc,0,5,1,a; b,,|,3,long\n"
    )
    jobs, _ = read_trace("own.csv")
    assert jobs.predecessors.names(jobs.id) == [[], ["a"], ["a", "b"]]
    assert jobs.predecessors.think.tolist() == [0, 2, 0]
    assert jobs.allowed.names() == [("n",), ("n", "m"), ()]
    told = "\n".join(honoured_lines(jobs, machines=read_cluster("cluster.toml")))
    assert "2 of 3 jobs name a limit of instances on one machine (2 different): left out" in told
    assert "2 of 3 jobs name a queue (2 different): left out" in told
    assert "2 of 3 jobs wait for others: left out" in "\n".join(pool_lines(jobs))


def test_transformations_keep_what_is_inside_and_count_what_is_not():
    jobs = read_trace_of(np.arange(10.0), [[], [0], [1], [2], [3], [4], [5], [6], [7], [8]])
    for part in (window(jobs, 3, 8), split(jobs, 0.3)[1], jobs.take(slice(3, 8))):
        names = part.predecessors.names(part.id)
        assert names[:3] == [[], [str(part.id[0])], [str(part.id[1])]]
        assert part.predecessors.dropped == 1
    few = sample(jobs, 5, seed=1)
    chosen = jobs.predecessors.waiting[[list(jobs.id).index(name) for name in few.id]]
    assert len(few.predecessors.job) + few.predecessors.dropped == chosen.sum()
    assert in_units(jobs, time=(1 / 60, "min")).predecessors.think[1] == pytest.approx(1 / 60)
    kept, rejected = fitted(jobs, [3.0])
    assert len(kept) == 4
    assert rejected.counts == {"waits_for_rejected": 5, "too_large": 1}


def read_trace_of(arrival, waits_for):
    demand = [[1.0]] * len(arrival)
    demand[4] = [9.0]
    return jobs_of(
        arrival, [1.0] * len(arrival), demand, predecessors=Predecessors.of(waits_for, 1.0),
        allowed=Allowed.of([None] * len(arrival)),
    )  # fmt: skip


def test_training_on_a_trace_honours_both_and_says_so(here):
    rows = ["id,submit,run,cpu,depends_on,allowed"]
    rows += [f"{j},{j},30,4,{j - 1 if j % 3 else ''},{'big' if j % 4 == 0 else ''}" for j in range(300)]
    (here / "trace.csv").write_text("\n".join(rows))
    (here / "machines.csv").write_text("name,cpu,model\nx,8,small\ny,8,big\n")
    settings = SimpleClusterSettings().replace(
        workload="real_trace", trace_file="trace.csv", cluster="machines.csv", num_jobs=20, load=None,
        action="job_machine",
    )  # fmt: skip
    told = "\n".join(described(settings))
    assert "200 of 300 jobs wait for others" in told
    assert "75 of 300 jobs name the machines" in told
    env = SimpleClusterEnv(settings)
    for seed in range(3):
        obs, _ = env.reset(seed=seed)
        over = False
        while not over:
            obs, _, terminated, truncated, _ = env.step(int(np.flatnonzero(obs["action_mask"])[0]))
            over = terminated or truncated
        got = env.schedule()
        assert got.workload.predecessors is not None
        check(got)
    whole = Streamed(settings, 0, "train")
    assert whole.max_pairs >= 12


def test_real_pods_of_which_a_third_name_models_keep_to_them(shared_dir):
    """As in the files gpuspec05 to 33 of the trace: there 1,822 of 2,388 ran on a model that they exclude."""
    traces = shared_dir / "traces"
    jobs, _ = read_trace(traces / "openb_pod_list_default.first1000.csv")
    cluster = read_cluster(traces / "openb_node_list_gpu_node.csv")
    rng, models = np.random.default_rng(0), sorted(set(cluster.model.tolist()))
    named = [
        tuple(rng.choice(models, 2, replace=False).tolist()) if gpu and rng.random() < 0.33 else None
        for gpu in jobs.demand[:, 2].tolist()
    ]
    jobs = replace(jobs, allowed=Allowed.of(named))
    got = simulate(jobs, cluster, "fifo+best_fit+skip")
    first = got.placed.offset[:-1]
    limited = np.flatnonzero(jobs.allowed.limited & ~np.isnan(got.start)).tolist()
    assert len(limited) > 200
    assert all(cluster.model[got.placed.machine[first[job]]] in named[job] for job in limited)
