"""Files of `../shared/traces`, and others that come beside traces: read, or answered with what they are."""

import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import FORMATS, read_trace

TRACES = {
    "NASA-iPSC-1993-3.1-cln.first2000.swf": ("swf", 2000),
    "lublin_256.swf": ("swf", 10_000),
    "opendc/trace.swf": ("swf", 5),
    "opendc/trace.gwf": ("gwf", 70),
    "openb_pod_list_default.first1000.csv": ("openb", 1000),
    "batsim_example_workload_hpc_seed1_jobs250.json": ("batsim", 250),
    "maro_azure2019_vmtable_toy.csv": ("azure2019", 3),
}
OTHERS = {
    "alibaba_gpu2020_headers/pai_group_tag_table.header": "the table of tags .*: it has neither times",
    "alibaba_gpu2020_headers/pai_instance_table.header": "the table of instances .*: it has no demands",
    "alibaba_gpu2020_headers/pai_job_table.header": "the job table .*: it has no demands",
    "alibaba_gpu2020_headers/pai_machine_metric.header": "the measurements of machines .*: it has no jobs",
    "alibaba_gpu2020_headers/pai_machine_spec.header": "the list of machines .*: it has no jobs",
    "alibaba_gpu2020_headers/pai_sensor_table.header": "measurements of instances .*: it has neither times",
    "alibaba_gpu2020_headers/pai_task_table.header": "the names of the columns .*: it has no rows",
    "alibaba_gpu2025_dlrm.first500.csv": "GPU trace 2025, DLRM.*: most have no times",
    "alibaba_v2018_schema.txt": "a description of tables: .* has no jobs",
    "google2019_clusterdata_trace_format_v3.proto": "a schema in Protocol Buffers: .* has no jobs",
    "openb_node_list_gpu_node.csv": "a list of machines .*: it has no jobs",
    "philly_vc.csv": "virtual clusters .*: it has no jobs",
    "skypilot_spot_us-west-2c_v100_1.json": "spot machines .*: it has no jobs",
}
HASH = "8cb3bec23d14dbde320b6613452e768cbbf35b8bd64ee28fcceb77d3c47d"
JOB = "4b3f04b66a525d2df903eb16"


@pytest.mark.parametrize("name", TRACES)
def test_every_job_trace_loads_and_its_format_is_recognised(shared_dir, format_of, name):
    format, count = TRACES[name]
    if format not in FORMATS:
        pytest.skip(f"{format} is not a format yet")
    path = shared_dir / "traces" / name
    assert format_of(path) == format
    assert len(read_trace(path)[0]) == count


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_file_is_answered_with_what_it_is_and_lacks(shared_dir, name):
    with pytest.raises(UserError, match=OTHERS[name]):
        read_trace(shared_dir / "traces" / name)


def test_no_file_of_the_folder_is_left_out(shared_dir):
    folder = shared_dir / "traces"
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    found = {name for name in found if not name.startswith("cloud/")}  # of prices and capacities, not of jobs
    assert found - {"ORIGIN.md"} == {*TRACES, *OTHERS}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (f"{JOB},{HASH},58540f191766,Terminated,4550879.0,4551416.0", "the job table of"),
        (f"{JOB},{HASH},58540f191766,Waiting,4550879.0,", "the job table of"),
        (f"{JOB},worker,{HASH},{HASH},{HASH},Running,2081336.0,,{JOB}", "the table of instances of"),
        (f"{JOB},T4,96,512,2", "the list of machines of"),
        (f"{HASH},{JOB},1,2" + ",0.1" * 8, "the measurements of machines of"),
        (f"{JOB},w,{HASH},{HASH},{JOB},/dev/nvidia0" + ",1.5" * 10, "the measurements of instances of"),
        (f"{HASH},d2d3b77d342e,V100M32,fbeb14d671c629b6,nmt", "the table of tags of"),
        ("ins_1,M1,j_1,1,Terminated,5,9,m_1932,1,1,3,9,0.1,0.2", "the table of instances of the Alibaba"),
        ("m_1932,0,10,29,96,100,USING", "the list of machines of the Alibaba"),
        ("m_1932,386640,41,92,,,43.04,33.08,5", "the utilisation of machines"),
        ("c_1,m_2556,0,app_5052,started,400,400,1.56", "the list of containers"),
        ("c_1,m_2556,386640,7,87,,1.5,0,0.1,0.2,3", "the utilisation of containers"),
        ("machineId, number of GPUs, single GPU mem\nm31,8, 24GB", "a list of machines .Philly"),
        (
            "time,machine_id,cpu_util\n2017-11-27 00:04:00 PST,m29,31.845",
            "the utilisation of processors .Philly",
        ),
    ],
)
def test_tables_without_a_header_are_told_by_their_fields(read_text, row, what):
    with pytest.raises(UserError, match=f"is {what}.*jobs are in|is {what}.*: it has no jobs"):
        read_text(f"{row}\n{row}\n" if "\n" not in row else f"{row}\n")


def test_the_map_that_is_suggested_works(read_text):
    head = "instance_sn,role,app_name,cpu_request,gpu_request,memory_request,creation_time,deletion_time"
    text = f"{head}\ninstance_1,CN,app_130,64,0,320.0,1435629.0,1435760.0\n"
    with pytest.raises(UserError) as error:
        read_text(text)
    jobs, _ = read_text(text, map=str(error.value).rpartition("use a map: ")[2])
    assert (jobs.id[0], jobs.duration[0], jobs.demand[0].tolist()) == ("instance_1", 131, [64, 320, 0])
