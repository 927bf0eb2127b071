"""scale_out: two processes learn what one learns, a lost node costs its last steps alone, and the files are sound."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from course import ROOT
from lessons import report_in
from template_projects import ALONE, check_report, in_folder, stopped_at
from trl.scripts.vllm_serve import make_parser

from grpo_utils.project import new_project

TEMPLATE = ROOT / "templates" / "scale_out"
BIN = Path(sys.executable).parent
FEW = ["--eval_rows", "20", "--logging_steps", "1", "--save_steps", "2"]

PLUGIN = """
import os, sys
from accelerate import utils
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
asked = launch_command_parser().parse_args(["--config_file", sys.argv[1], "train.py"])
args, config, _ = _validate_launch_command(asked)
if args.use_deepspeed:
    args.deepspeed_fields_from_accelerate_config = ",".join(config.deepspeed_config)  # as `accelerate launch` does
    os.environ.update(utils.prepare_deepspeed_cmd_env(args)[1])
    plugin = utils.DeepSpeedPlugin()
    print("zero", plugin.zero_stage, plugin.zero3_save_16bit_model)
else:
    os.environ.update(utils.launch.prepare_multi_gpu_env(args))
    if args.use_fsdp:
        plugin = utils.FullyShardedDataParallelPlugin()
        print("fsdp", plugin.fsdp_version, plugin.reshard_after_forward, plugin.state_dict_type.name)
    else:
        print("ddp", args.multi_gpu, args.num_processes)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, built",
    [
        ("ddp.yaml", "ddp True 2"),
        ("fsdp2.yaml", "fsdp 2 True FULL_STATE_DICT"),
        ("zero3.yaml", "zero 3 True"),
    ],
)
def test_accelerate_builds_the_plugin_of_every_engine(name, built):
    run = in_folder(TEMPLATE, "-c", PLUGIN, f"accelerate/{name}")
    assert run.stdout.splitlines()[-1:] == [built], run.stdout + run.stderr[-2000:]


def test_no_engine_goes_untested():
    assert {path.name for path in (TEMPLATE / "accelerate").iterdir()} == {"ddp.yaml", "fsdp2.yaml", "zero3.yaml"}


def test_shellcheck_finds_nothing_in_the_slurm_script():
    run = subprocess.run([BIN / "shellcheck", TEMPLATE / "slurm.sh"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def cluster(folder: Path, nodes: list[str], ends_with: int = 0, **variables: str) -> tuple:
    """Run slurm.sh where Slurm's and accelerate's commands write down how they were called."""
    calls, commands = folder / "calls", folder / "bin"
    commands.mkdir()
    wrapper = '#!/bin/bash\necho "{name} $*" >> "$CALLS"\n{more}\n'
    step = 'while [[ $1 == --* ]]; do shift; done\nSLURM_PROCID=1 exec "$@"'
    heard = "grep -q vllm-serve $CALLS"  # the server starts in the background
    more = {
        "scontrol": '[[ $1 == show ]] && tr , "\\n" <<< "$3" || true',
        "srun": step,
        "accelerate": f"[[ $VLLM_NODES == 0 ]] || for _ in {{1..50}}; do {heard} && break; sleep 0.1; done\n"
        + f'echo "with $SRUN_CPUS_PER_TASK CPUs" >> "$CALLS"; exit {ends_with}',
        "trl": "exec sleep 60",
    }
    for name, body in more.items():
        (commands / name).write_text(wrapper.format(name=name, more=body))
        (commands / name).chmod(0o755)
    slurm = {"SLURM_JOB_NODELIST": ",".join(nodes), "SLURM_JOB_ID": "7", "CALLS": str(calls)}
    path = f"{commands}:{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", TEMPLATE / "slurm.sh"], env=ALONE | slurm | variables | {"PATH": path},
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    return run, calls.read_text() if calls.exists() else ""


def test_the_slurm_script_trains_on_all_nodes_but_the_last_which_samples(tmp_path):
    run, calls = cluster(tmp_path, ["n1", "n2", "n3"])
    assert run.returncode == 0, run.stderr
    assert "srun --nodes=1 --ntasks=1 --nodelist=n3 trl vllm-serve" in calls
    assert "srun --nodes=2 --ntasks=2 --nodelist=n1,n2 --kill-on-bad-exit=1" in calls
    said = "--num_machines 2 --num_processes 16 --machine_rank 1 --main_process_ip n1"
    assert f"accelerate launch --config_file accelerate/fsdp2.yaml {said}" in calls
    assert "train.py --config config.8gpu.yaml --vllm_server_host n3 --vllm_server_port 8000" in calls
    assert "requeue" not in calls


def test_a_step_of_the_slurm_script_has_all_the_cpus_of_its_node(tmp_path):
    """It had one: since Slurm 22.05 srun does not take --cpus-per-task over from sbatch."""
    assert "with 64 CPUs" in cluster(tmp_path, ["n1", "n2"], SLURM_CPUS_PER_TASK="64")[1]


def test_the_servers_gpus_divide_the_heads_of_its_model(tmp_path):
    """vLLM refuses 28 heads on 8 GPUs, and the job would have gone back into the queue five times."""
    calls = cluster(tmp_path, ["n1", "n2"])[1]
    heads, key_heads = {"Qwen/Qwen2.5-7B-Instruct": (28, 4)}[re.search(r"--model (\S+)", calls)[1]]
    gpus = int(re.search(r"--tensor_parallel_size (\d+)", calls)[1])
    assert heads % gpus == 0 == key_heads % gpus


def test_without_a_server_all_nodes_train(tmp_path):
    run, calls = cluster(tmp_path, ["n1", "n2"], VLLM_NODES="0", CONFIG="config.yaml")
    assert run.returncode == 0 and "trl" not in calls
    assert "--num_machines 2 --num_processes 16" in calls and "vllm_server_host" not in calls


def test_a_job_that_lost_a_node_goes_back_into_the_queue_but_not_for_ever(tmp_path):
    run, calls = cluster(tmp_path, ["n1", "n2", "n3"], ends_with=9)
    assert run.returncode == 9 and "scontrol requeue 7" in calls
    (tmp_path / "again").mkdir()
    run, calls = cluster(tmp_path / "again", ["n1", "n2", "n3"], ends_with=9, SLURM_RESTART_COUNT="5")
    assert run.returncode == 9 and "requeue" not in calls


def test_one_node_cannot_both_sample_and_train(tmp_path):
    run, calls = cluster(tmp_path, ["n1"])
    assert run.returncode == 2 and "leave none for training" in run.stderr and "srun" not in calls


@pytest.mark.parametrize("file", ["slurm.sh", "config.8gpu.yaml", "README.md"])
def test_every_flag_for_the_vllm_server_is_one_that_trl_knows(file):
    found = re.findall(r"trl vllm-serve((?: --\w+ \S+)+)", (TEMPLATE / file).read_text(encoding="utf-8"))
    known = {action.dest for action in make_parser()._actions}
    assert found and {flag for line in found for flag in re.findall(r"--(\w+)", line)} <= known


def test_the_memory_arithmetic_names_the_engine_that_fits():
    shown = in_folder(TEMPLATE, "estimate_memory.py", "--billions", "7.6", "--gpus", "8").stdout
    assert re.search(r"DDP, all weights .* more than 0.9 x 80", shown)
    assert re.search(r"FSDP2, all weights .* fits: fsdp2.yaml", shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables, change, said",
    [
        ({}, ["--use_unsloth", "true"], "use_unsloth must be false here"),
        (
            {},
            ["--load_in_4bit", "true", "--use_vllm", "true", "--vllm_mode", "server"],
            "does not work with a vLLM server",
        ),
        ({"ACCELERATE_USE_FSDP": "true"}, ["--load_in_4bit", "true"], "load_in_4bit works only with DDP; fsdp needs"),
        (
            {"ACCELERATE_USE_FSDP": "true", "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT"},
            [],
            "fsdp_state_dict_type must be FULL_STATE_DICT",
        ),
    ],
)
def test_what_an_engine_excludes_is_told_before_anything_is_loaded(scale_out, monkeypatch, variables, change, said):
    for name, value in variables.items():
        monkeypatch.setitem(ALONE, name, value)
    run = in_folder(scale_out, "train.py", "--config", "config.cpu.yaml", *change)
    assert run.returncode and said in run.stderr and "Traceback" not in run.stderr, run.stderr[-2000:]


@pytest.fixture(scope="module")
def scale_out(tmp_path_factory):
    return new_project("scale_out", tmp_path_factory.mktemp("scale_out") / "project")


def launched(folder, *command: str, seconds: int = 300) -> subprocess.CompletedProcess:
    """A command of this environment: torchrun, accelerate."""
    return subprocess.run(
        [BIN / command[0], *command[1:]], cwd=folder, env=ALONE, capture_output=True, text=True, timeout=seconds
    )


TWO = ["torchrun", "--nproc_per_node", "2", "train.py", "--config", "config.cpu.yaml"]


@pytest.mark.slow
def test_two_processes_end_alike_and_as_good_as_one_with_the_same_batch(scale_out):
    two = launched(scale_out, *TWO, "--max_steps", "30", "--output_dir", "outputs/two")
    assert "The weights of 2 processes are identical" in two.stdout, two.stderr[-2000:]
    alone = ["--per_device_train_batch_size", "64", "--eval_batch", "200", "--output_dir", "outputs/alone"]
    one = in_folder(scale_out, "train.py", "--config", "config.cpu.yaml", "--max_steps", "30", *alone)
    assert one.returncode == 0, one.stderr[-2000:]
    assert (scale_out / "outputs" / "alone" / "model").is_dir()
    reports = [check_report(scale_out / "outputs" / name / "report.json") for name in ("two", "alone")]
    assert [report["processes"] for report in reports] == [2, 1]
    for report in reports:
        assert report["before"]["accuracy_ci95"][1] < report["after"]["accuracy_ci95"][0], report["after"]
    (low, high), (other_low, other_high) = (report["after"]["accuracy_ci95"] for report in reports)
    assert low <= other_high and other_low <= high, (low, high, other_low, other_high)
    assert len(two.stdout.splitlines()) < 60  # one voice


@pytest.mark.upgrade
@pytest.mark.slow
def test_accelerate_launches_with_the_ddp_file(scale_out):
    command = ["accelerate", "launch", "--config_file", "accelerate/ddp.yaml", "train.py"]
    run = launched(
        scale_out, *command, "--config", "config.cpu.yaml", *FEW, "--max_steps", "2", "--load_in_4bit", "true"
    )
    assert "The weights of 2 processes are identical" in run.stdout, run.stderr[-2000:]
    assert report_in(scale_out / "outputs" / "scale")["engine"] == "ddp"


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def nodes(folder: Path, output: str) -> list[subprocess.Popen]:
    """Two nodes of one process each, which meet on this machine."""
    port = free_port()
    there = ["--nnodes", "2", "--nproc_per_node", "1", "--master_addr", "127.0.0.1", "--master_port", str(port)]
    what = ["train.py", "--config", "config.cpu.yaml", *FEW, "--max_steps", "8", "--output_dir", output]
    return [
        subprocess.Popen(
            [BIN / "torchrun", *there, "--node_rank", str(rank), *what], cwd=folder, env=ALONE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        for rank in (0, 1)
    ]  # fmt: skip


def kill_node(node: subprocess.Popen) -> None:
    """The machine is gone: its launcher and its worker, which torchrun put into a session of its own."""
    children = subprocess.run(["pgrep", "-P", str(node.pid)], capture_output=True, text=True).stdout.split()
    for pid in [*map(int, children), node.pid]:
        os.kill(pid, signal.SIGKILL)


def said_by_both(pair: list[subprocess.Popen]) -> str:
    """What they said, at the end."""
    said = "".join(node.communicate(timeout=200)[0] for node in pair)
    assert [node.returncode for node in pair] == [0, 0], said[-3000:]
    return said


@pytest.mark.upgrade  # Ctrl-C below stops and continues two processes on every commit
@pytest.mark.slow
def test_a_lost_node_costs_the_steps_since_the_last_checkpoint_and_nothing_else(scale_out):
    """It could not go on at all: torch does not load a checkpoint to cpu:0, as accelerate calls the device."""
    for name in ("lost", "unbroken"):
        shutil.rmtree(scale_out / "outputs" / name, ignore_errors=True)
    first, second = nodes(scale_out, "outputs/lost")
    for line in first.stdout:
        if line.startswith("step    5"):
            kill_node(second)
            break
    first.communicate(timeout=120)
    assert first.returncode != 0 and not (scale_out / "outputs" / "lost" / "report.json").exists()
    said = said_by_both(nodes(scale_out, "outputs/lost"))
    assert "Resuming from outputs/lost/checkpoint-4." in said, said[-3000:]
    whole = said_by_both(nodes(scale_out, "outputs/unbroken"))
    assert "step    8" in whole, whole[-3000:]
    lost, unbroken = (report_in(scale_out / "outputs" / name) for name in ("lost", "unbroken"))
    assert (lost["before"], lost["after"], lost["steps"]) == (unbroken["before"], unbroken["after"], 8)


@pytest.mark.slow
def test_ctrl_c_stops_all_processes_after_the_same_step(scale_out):
    command = [*TWO, "--eval_rows", "20", "--logging_steps", "1", "--save_steps", "40", "--output_dir", "outputs/cut"]
    stopped_at(scale_out, "step    3", BIN / command[0], *command[1:], "--max_steps", "40")
    [checkpoint] = (scale_out / "outputs" / "cut").glob("checkpoint-*")
    assert (checkpoint / "rng_state_0.pth").exists() and (checkpoint / "rng_state_1.pth").exists()
    step = int(checkpoint.name.removeprefix("checkpoint-"))
    rest = launched(scale_out, *command, "--max_steps", str(step + 1))
    assert rest.returncode == 0 and report_in(checkpoint.parent)["steps"] == step + 1, rest.stderr[-3000:]


@pytest.mark.upgrade
@pytest.mark.slow
def test_fsdp2_trains_saves_and_goes_on_with_the_cpu_taken_for_a_gpu(scale_out):
    start = ["accelerate", "launch", "--config_file", "accelerate/fsdp2.yaml", "--num_processes", "2"]
    start += ["--mixed_precision", "no", ROOT / "tests" / "fsdp_on_cpu.py", "train.py"]
    what = ["--config", "config.cpu.yaml", *FEW, "--max_steps", "6"]
    whole = launched(scale_out, *start, *what, "--output_dir", "outputs/sharded")
    assert whole.returncode == 0, whole.stderr[-3000:]
    report = report_in(scale_out / "outputs" / "sharded")
    assert report["engine"] == "fsdp" and report["processes"] == 2
    folder = scale_out / "outputs" / "sharded"
    (folder / "report.json").unlink()
    shutil.rmtree(folder / "checkpoint-6")  # as if it had died after step 5
    rest = launched(scale_out, *start, *what, "--output_dir", "outputs/sharded")
    assert "Resuming from outputs/sharded/checkpoint-4." in rest.stdout, rest.stderr[-3000:]
    again = report_in(folder)
    assert (again["before"], again["after"], again["steps"]) == (report["before"], report["after"], 6)


@pytest.mark.upgrade
@pytest.mark.slow
def test_a_sharded_run_that_died_in_its_last_evaluation_comes_to_its_end(scale_out):
    """It never did: accelerate shards no model without an optimizer, so each new start died where the first had."""
    start = ["accelerate", "launch", "--config_file", "accelerate/fsdp2.yaml", "--num_processes", "2"]
    start += ["--mixed_precision", "no", ROOT / "tests" / "fsdp_on_cpu.py", "train.py"]
    what = [*start, "--config", "config.cpu.yaml", *FEW, "--max_steps", "4", "--output_dir", "outputs/late"]
    assert launched(scale_out, *what).returncode == 0
    report = report_in(scale_out / "outputs" / "late")
    (scale_out / "outputs" / "late" / "report.json").unlink()
    rest = launched(scale_out, *what)
    assert rest.returncode == 0 and "step    3" in rest.stdout and "step    2" not in rest.stdout, rest.stderr[-3000:]
    assert report_in(scale_out / "outputs" / "late")["after"] == report["after"]
