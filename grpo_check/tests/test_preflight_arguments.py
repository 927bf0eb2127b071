"""Preflight on single arguments and the machine: a value that fails later is found, one that is not used is not."""

from dataclasses import replace

import pytest
from grpo_check.preflights import misfits
from grpo_check.preflights import planned as of_run
from grpo_check.preflights.checking import walk
from grpo_check.preflights.config_file import preflight_file
from grpo_check.preflights.planned import plan
from grpo_check.preflights.values import Values
from grpo_core.errors import CourseError
from grpo_core.gpus import Gpu, parse_gpus
from preflight_runs import check, on
from trl import GRPOConfig

from grpo_utils.profiles import PROFILES


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"max_steps": [1]}, "wrong_type"),
        ({"num_generations": {"a": 1}}, "wrong_type"),
        ({"learning_rate": [1e-3]}, "wrong_type"),
        ({"per_device_train_batch_size": 8.0}, "wrong_type"),
        ({"generation_batch_size": 16.0}, "wrong_type"),
        ({"max_completion_length": float("inf")}, "out_of_range"),
        ({"reward_weights": ["1.0"]}, "wrong_type"),
        ({"min_p": 1.5}, "out_of_range"),
        ({"top_p": 2.0}, "out_of_range"),
        ({"repetition_penalty": 0.0}, "out_of_range"),
        ({"report_to": None}, "report_to"),
        ({"report_to": {"a": 1}}, "wrong_type"),
    ],
    ids=str,
)
def test_a_value_that_fails_later_is_found(arguments, code):
    without = ["steps_per_generation"]
    report = check(arguments=arguments, without=without)
    assert code in {f.code for f in report.errors}, str(report)


def test_eval_on_start_without_rows_is_found():
    report = check(arguments={"eval_on_start": True}, heldout=None)
    assert {f.code for f in report.errors} == {"no_eval_rows"} and "eval_on_start=False" in str(report)


@pytest.mark.parametrize(
    ("changes", "code", "found"),
    [
        (on("l4", use_vllm=True, vllm_gpu_memory_utilization=1.5), "out_of_range", True),
        (on("l4", vllm_gpu_memory_utilization=1.5), "out_of_range", False),
        (on("l4", use_vllm=True, top_k=-1), "out_of_range", False),
        (on("l4", top_k=-1), "out_of_range", True),
        (on("t4", model_init_kwargs={"dtype": "bfloat16"}), "bf16_gpu", True),
        (on("t4", model_init_kwargs={"torch_dtype": "torch.bfloat16"}), "bf16_gpu", True),
        (on("t4", model_init_kwargs='{"dtype": "bfloat16"}'), "bf16_gpu", True),
    ],
    ids=lambda value: str(value["arguments"]) if isinstance(value, dict) else value,
)
def test_an_argument_counts_where_it_is_used(changes, code, found):
    assert (code in check(**changes).codes) == found


def test_a_dtype_may_be_auto_or_torchs_own():
    import torch

    for dtype in ("auto", torch.float16, "float16"):
        assert check(**{**on("l4"), "dtype": dtype}).estimate is not None


def test_a_shortage_of_memory_on_several_processes_is_a_warning():
    small = {**on(Gpu("NVIDIA tiny", 0.5, 8.6), per_device_train_batch_size=64), "backend": "transformers"}
    assert "memory" in check(**small).codes
    report = check(**small, processes=2)
    assert report.ok and "memory_tight" in report.codes and "sharded" in str(report), str(report)


#: Cards as `--gpu` names them, as nvidia-smi lists a machine's, and whether they are the same.
CARDS = [
    ("t4", "Tesla T4, 15360, 7.5", True),
    ("a100", "NVIDIA A100-SXM4-40GB, 40960, 8.0", True),
    ("h100", "NVIDIA H100 80GB HBM3, 81559, 9.0", True),
    ("l4", "NVIDIA L40S, 46068, 8.9", False),
    ("l4", "", False),
]


@pytest.mark.parametrize(("gpu", "listed", "here"), CARDS)
def test_what_is_not_installed_here_counts_only_if_the_run_is_here(gpu, listed, here, monkeypatch):
    monkeypatch.setattr(of_run, "find_gpus", lambda: parse_gpus(listed))
    report = check(**on(gpu, use_vllm=True))
    assert ("vllm" in {f.code for f in report.errors}) == here
    assert ("pip install trl[vllm]" in str(report)) == here


def test_the_mend_for_a_batch_on_three_processes_mends():
    arguments = {"per_device_train_batch_size": 4, "num_generations": 8}
    report = check(arguments=arguments, processes=3)
    assert "set num_generations to one of 2, 3, 4, 6, 12." in str(report)
    assert "per_device_train_batch_size=8 or" in str(report)
    for fixed in ({"num_generations": 6}, {"per_device_train_batch_size": 8}):
        assert check(arguments={**arguments, **fixed}, processes=3).ok


def test_names_in_a_file_that_are_none_are_findings(tmp_path):
    path = tmp_path / "config.yaml"
    lines = {
        "dataset_name: 3": "dataset_name=3 should be",
        "model_name_or_path: [a]": "model_name_or_path=['a'] should",
    }
    for line, said in {**lines, "lora_r: [1]": "lora_r=[1] should be int."}.items():
        path.write_text(f"{line}\nuse_cpu: true\nbf16: false")
        report = preflight_file(path)
        assert "wrong_type" in report.codes and said in str(report), str(report)


def test_a_profile_of_your_own_needs_a_gpu_where_there_is_none(monkeypatch):
    monkeypatch.setattr(of_run, "find_gpus", list)
    mine = replace(PROFILES["t4"], name="mine")
    with pytest.raises(CourseError, match="profile.name='mine' is not one of .* or pass gpu="):
        plan({}, mine)
    assert plan({}, mine, gpu="l4").gpu == of_run.HARDWARE["l4"].gpu
    assert plan({}, PROFILES["t4"]).gpu == of_run.HARDWARE["t4"].gpu
    card = Gpu("NVIDIA B200", 180.0, 10.0)
    monkeypatch.setattr(of_run, "find_gpus", lambda: [card])
    assert plan({}, mine).gpu == card


#: Values that YAML reads as a string, and what to write instead.
QUOTED = {
    ("max_completion_length", "512"): "max_completion_length: 512 instead",
    ("learning_rate", "1e-5"): "learning_rate: 1.0e-05 instead",
    ("use_cpu", "yes"): "use_cpu: True instead",
}


@pytest.mark.parametrize(("name", "text"), QUOTED)
def test_a_value_in_quotes_is_named_with_its_reason_and_stays_a_whole_number(name, text):
    values = Values({name: text}, (GRPOConfig,), from_yaml=True)
    [finding] = walk(plan(values), misfits.RULES)[0]
    assert finding.code == "text_number" and "quotes" in finding.why
    assert finding.fixes == (f"write {QUOTED[name, text]}.",)


def test_a_length_with_a_point_is_no_error_since_trl_takes_it():
    assert check(arguments={"max_completion_length": 32.0}).ok
