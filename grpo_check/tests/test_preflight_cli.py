"""A preflight from a terminal, on a config file that a user brings."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import Dataset
from grpo_check.packages import trl_is_at_least
from grpo_check.preflights import arguments as of_arguments
from grpo_check.preflights import models as of_models
from grpo_check.preflights import planned
from grpo_check.preflights import rewards as of_rewards
from grpo_check.preflights.config_file import preflight_file, read_config_file
from grpo_check.preflights.named_rows import read_rows
from grpo_check.preflights.planned import KEEPS_INIT_KWARGS
from grpo_core.errors import CourseError
from places import HERE, ROOT
from preflight_runs import SOUND, TINY, write_addition

from grpo_check import preflight
from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU

REWARDS = """
from grpo_utils import correctness_reward

def right(completions, answer, **kwargs):
    return correctness_reward(completions, answer)

def everything(completions, answer, **kwargs):
    return [float(gold in str(c)) for c, gold in zip(completions, answer)]

def needs(completions, solution, **kwargs):
    return [0.0 for _ in completions]

number = 3
"""
ROWS = [{"prompt": [{"role": "user", "content": f"What is {n} + 1?"}], "answer": str(n + 1)} for n in range(70)]
FILES = {
    "mine.py": REWARDS,
    "broken.py": "import no_such_package\n",
    "rows.jsonl": "\n".join(map(json.dumps, ROWS)),
    "rows.json": json.dumps(ROWS),
    "same.jsonl": json.dumps(ROWS[0]),
    "text.csv": 'prompt,answer\n"What is 2 + 2?",4\n',
    "bad.parquet": "rows",
    "bad.jsonl": '{"prompt": 1}\n{"prompt"\n',
    "list.jsonl": "[1, 2]\n",
    "object.json": "{}",
    "ragged.csv": "prompt,answer\na,b,c\n",
    "rows.txt": "rows",
    "sound.yaml": SOUND,
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    Dataset.from_list(ROWS).to_parquet(tmp_path / "rows.parquet")
    write_addition(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("mine", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def report_on(folder: Path, more: str = "", without: str = "", **chosen):
    """The report on the sound file with keys added or taken out."""
    kept = [line for line in SOUND.splitlines() if not (without and line.startswith(without))]
    (folder / "config.yaml").write_text("\n".join([*kept, more]), encoding="utf-8")
    return preflight_file(folder / "config.yaml", **chosen)


#: What a file holds (bytes or text), and what is said of it.
BAD_FILES = {
    "nothing": ("", "contains None, not a mapping of names to values. Write one 'name: value' per line"),
    "a comment alone": ("# later\n", "contains None"),
    "a list": ("- learning_rate\n", "contains ['learning_rate'], not a mapping"),
    "a sentence": ("learning rate is high", "contains 'learning rate is high', not a mapping"),
    "a tab": ("learning_rate: 1\nbeta:\n\tx: 1\n", "line 3, column 1"),
    "an open bracket": ("reward_funcs: [a, b\nbeta: 0\n", "is not valid YAML: while parsing a flow sequence"),
    "a second colon": ("learning_rate: 1\nbeta: 0: 1\n", "line 2, column 8: beta: 0: 1"),
    "a switch as key": ("yes: 1\n", "contains {True: 1}, not a mapping of names"),
    "not UTF-8": ("beta: 0 # é".encode("latin-1"), "is not UTF-8 text (byte 10)"),
    "nul bytes": (b"beta: \x00", "is not valid YAML"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_one_sentence(content, message, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CourseError, match=re.escape(message)):
        read_config_file(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sond.yaml", "There is no file 'sond.yaml'. Did you mean 'sound.yaml'"),
        (".", "is a folder; name the YAML file"),
    ],
)
def test_a_missing_file_is_one_sentence(name, message, folder):
    with pytest.raises(CourseError, match=re.escape(message)):
        read_config_file(Path(name))


def test_arguments_that_a_trainer_saved_as_json_are_read_as_json(folder):
    (folder / "training_args.json").write_text('{"adam_epsilon": 1e-08, "fsdp": [], "use_cpu": true, "bf16": false}')
    assert not preflight_file(folder / "training_args.json").findings
    (folder / "training_args.json").write_text('{"adam_epsilon": 1e-08')
    with pytest.raises(CourseError, match="is not valid JSON"):
        preflight_file(folder / "training_args.json")


def test_a_sound_file_is_ok(folder):
    report = preflight_file(folder / "sound.yaml")
    assert report.ok and not report.codes, str(report)
    assert report.estimate.minutes.total > 0


@pytest.mark.parametrize("more", ["use_vllm: true", "optim: paged_adamw_8bit", "fp16: true", "report_to: wandb", ""])
def test_a_file_for_a_gpu_has_no_fault_because_this_machine_has_none(more, folder, no_lab, monkeypatch):
    monkeypatch.setattr(planned, "find_gpus", list)
    monkeypatch.setattr(of_arguments, "find_spec", lambda name: None)
    kept = "\n".join(line for line in SOUND.splitlines() if not re.match("use_cpu|bf16|report_to", line))
    (folder / "config.yaml").write_text(f"{kept}\n{more}", encoding="utf-8")
    report = preflight_file(folder / "config.yaml")
    assert not report.findings and report.estimate is None
    assert "the GPU (--gpu t4)" in report.skipped["memory and minutes"]
    assert preflight_file(folder / "config.yaml", gpu="cpu").findings


#: Lines added to the sound file, a key taken out, the code, and a piece of the text.
WRONG = {
    "a misspelled key": ("learnign_rate: 1.0e-5", "", "unknown_argument", "Did you mean 'learning_rate'?"),
    "a misspelled key of the model": ("lora_alfa: 32", "", "unknown_argument", "Did you mean 'lora_alpha'?"),
    "another tool's key": ("lora_rank: 32", "", "unknown_argument", "write 'lora_r'"),
    "an argument of the trainer": ("peft_config: {r: 8}", "", "unknown_argument", "to GRPOTrainer in a script"),
    "a removed key": ("max_prompt_length: 512", "", "unknown_argument", "filter the dataset"),
    "a key by another name": ("kl_coef: 0.04", "", "unknown_argument", "write 'beta'"),
    "a loss that is set otherwise": ("loss_type: gspo", "", "unknown_choice", "importance_sampling_level: sequence"),
    "a text for a number": ("beta: none at all", "", "wrong_type", "beta='none at all' should be float."),
    "no, unquoted": ("eval_strategy: no", "", "wrong_type", "eval_strategy: 'no' with quotes"),
    "a group that is cut": ("num_generations: 7", "", "batch", "num_generations to one of 2, 4, 8"),
    "4-bit without an adapter": ("load_in_4bit: true", "use_peft", "four_bit_full", "use_peft: true, lora_r: 16"),
    "both bit widths": (
        "load_in_4bit: true\nload_in_8bit: true",
        "",
        "model_refused",
        "can't use 8 bit and 4 bit precision at the same time",
    ),
    "FlashAttention on a CPU": (
        "attn_implementation: flash_attention_2",
        "",
        "flash_attention",
        "attn_implementation: sdpa",
    ),
    "bf16 on a CPU without use_cpu": ("", "use_cpu|bf16", "no_gpu", "--gpu t4"),
    "one reward as a word": (
        "reward_funcs: accuracy_reward",
        "reward_funcs",
        "wrong_type",
        "reward_funcs: [accuracy_reward]",
    ),
    "no reward": ("reward_funcs: []", "reward_funcs", "no_rewards", "No reward source"),
    "a model that is not there": ("model_name_or_path: ./none", "model_name", "model_missing", "that is cached"),
    "too few rows": ("dataset_name: same.jsonl", "dataset_name", "too_few_rows", "at least 8 rows"),
}


@pytest.fixture
def no_lab(monkeypatch):
    """`probe` has no time: it takes most of a preflight's, and most tests are not about it."""
    monkeypatch.setattr(of_rewards, "LONGEST_TRIAL", 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("more", "without", "code", "text"), WRONG.values(), ids=WRONG)
def test_a_wrong_setting_is_refused_with_the_fix(more, without, code, text, folder, no_lab):
    kept = [line for line in SOUND.splitlines() if not (without and re.match(without, line))]
    (folder / "config.yaml").write_text("\n".join([*kept, more]), encoding="utf-8")
    report = preflight_file(folder / "config.yaml", gpu="cpu" if code == "no_gpu" else "")
    assert not report.ok and code in {finding.code for finding in report.errors}, str(report)
    assert text in str(report)


def test_a_number_that_yaml_reads_as_text_is_named_and_read_as_trl_does(folder, no_lab):
    report = report_on(folder, "learning_rate: 2e-3", without="learning_rate")
    assert report.ok and report.codes == {"text_number"} and "learning_rate: 0.002" in str(report)


def test_trl_reads_such_a_number_too_and_its_parser_changes_nothing_here(folder):
    from trl.scripts.grpo import make_parser

    (folder / "config.yaml").write_text("learning_rate: 1e-5\n")
    parser = make_parser()  # makes `str` of `list[float]` and of `str | bool`, in the dataclass itself
    parsed = parser.parse_args_and_config(["--config", "config.yaml", "--bf16", "false", "--use_cpu"])
    assert parsed[1].learning_rate == 1e-5
    assert preflight(training_arguments(CPU), profile=CPU).ok


def test_settings_of_an_adapter_that_is_not_made_are_named(folder, no_lab):
    report = report_on(folder, "lora_r: 32", without="use_peft")
    assert "peft_off" in report.codes and "use_peft: true" in str(report)


def test_what_modelconfig_rejects_is_reported_next_to_other_errors(folder, no_lab):
    report = report_on(folder, "num_generations: 7\nload_in_4bit: true\nload_in_8bit: true")
    assert {finding.code for finding in report.errors} == {"batch", "model_refused"}, str(report)


@pytest.mark.skipif(trl_is_at_least(KEEPS_INIT_KWARGS), reason="this TRL discards nothing")
def test_options_that_trl_grpo_discards_are_named_and_not_judged(folder, no_lab):
    discarded = "model_init_kwargs: {attn_implementation: flash_attention_2, dtype: bfloat16}"
    report = report_on(folder, f"{discarded}\nfp16: true", without="use_cpu", gpu="t4")
    assert report.ok and report.codes == {"init_kwargs_discarded"}, str(report)
    report = report_on(folder, f"{discarded}\nattn_implementation: flash_attention_2")
    assert report.codes == {"init_kwargs_discarded", "flash_attention"}, str(report)


@pytest.mark.skipif(not trl_is_at_least(KEEPS_INIT_KWARGS), reason="this TRL discards them")
def test_options_that_trl_grpo_keeps_are_judged(folder, no_lab):
    """They take the place of the keys, as in TRL's script."""
    kept = "model_init_kwargs: {attn_implementation: flash_attention_2}"
    report = report_on(folder, f"{kept}\nattn_implementation: sdpa")
    assert report.codes == {"flash_attention"}, str(report)


def test_evaluation_without_rows_has_a_fix_for_the_file(folder, no_lab):
    report = report_on(folder, "eval_strategy: steps\neval_steps: 10", train="rows.jsonl", without="dataset_name")
    [finding] = [one for one in report.errors if one.code == "no_eval_rows"]
    assert "--heldout FILE" in finding.fixes[0] and "eval_strategy: 'no'" in finding.fixes[0]


def test_a_file_that_names_no_rewards_leaves_them_to_whoever_runs_it(folder, no_lab):
    report = report_on(folder, "seed: 1", without="reward_funcs")
    assert report.ok and not report.codes and "rewards" in report.skipped


def test_the_gold_answers_are_in_the_column_that_a_reward_reads(folder):
    rows = [row | {"ground_truth": row["answer"], "answer": ""} for row in ROWS]
    (folder / "named.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    named = REWARDS.replace("answer", "ground_truth")
    (folder / "named.py").write_text(named, encoding="utf-8")
    report = report_on(folder, "dataset_name: named.jsonl", without="dataset_name", rewards=["named.py:everything"])
    assert "bad_answer" not in report.codes, str(report)


def test_keys_of_accelerate_are_known_and_processes_count(folder, no_lab):
    report = report_on(folder, "num_processes: 3\nmixed_precision: 'no'\naccelerate_config: multi_gpu\nenv: {A: 1}")
    assert report.ok and "unknown_argument" not in report.codes, str(report)
    assert not report_on(folder, "num_processes: 3\nnum_generations: 5").ok
    with pytest.raises(CourseError, match="processes='two' should be a whole number"):
        report_on(folder, "num_processes: two")


def test_what_is_not_there_offline_is_skipped_and_said(folder, no_lab):
    report = report_on(folder, "dataset_name: trl-lib/DeepMath-103K", without="dataset_name")
    assert report.ok and "nothing is downloaded; pass --train FILE" in report.skipped["rows"]
    assert "rows" in report_on(folder, without="dataset_name").skipped


def in_folder(folder: Path) -> Path:
    """A folder of files, as `trl grpo` accepts it."""
    (folder / "data").mkdir()
    for split in ("train", "test"):
        (folder / "data" / f"{split}.jsonl").write_text(FILES["rows.jsonl"], encoding="utf-8")
    return folder / "data"


def test_a_folder_of_files_is_read_as_trl_reads_it(folder, no_lab):
    in_folder(folder)
    how = dict(without="dataset_name")
    report = report_on(folder, "dataset_name: data", **how)
    assert report.ok and "rows" not in report.skipped and "prompt lengths" in str(report)
    report = report_on(folder, "dataset_name: data\neval_strategy: steps\neval_steps: 10", **how)
    assert {finding.code for finding in report.errors} == {"leak"}, str(report)
    report = report_on(folder, "dataset_name: data\nreward_funcs: [accuracy_reward]", **how, rewards=["mine.py:needs"])
    assert {finding.code for finding in report.errors} == {"missing_column"}, str(report)
    report = report_on(folder, "dataset_name: data\ndataset_train_split: training", **how)
    assert report.codes == {"unreadable_rows"} and "has no split 'training'; it has train, test" in str(report)


def test_a_folder_that_trl_cannot_read_is_an_error(folder):
    from datasets import Dataset, DatasetDict, load_dataset

    saved = DatasetDict(train=Dataset.from_list(ROWS))
    saved["train"].save_to_disk(folder / "one")
    saved.save_to_disk(folder / "all")
    for name in ("one", "all"):
        with pytest.raises(CourseError, match="was written by save_to_disk"):
            read_rows(name, folder, "train")
    with pytest.raises(ValueError, match="saved using `save_to_disk`"):
        load_dataset(str(folder / "one"))
    assert "prompt" not in load_dataset(str(folder / "all"))["train"].column_names  # it reads the state file as rows
    (folder / "empty").mkdir()
    with pytest.raises(CourseError, match="cannot read 'empty': .* doesn't contain any data files"):
        read_rows("empty", folder, "train")


def test_the_last_line_names_what_was_not_checked(folder, no_lab):
    last = str(report_on(folder, without="dataset_name")).splitlines()[-1]
    assert not last.startswith("ok") and "not checked: rows" in last
    last = str(report_on(folder, "num_generations: 7", without="dataset_name")).splitlines()[-1]
    assert last.startswith("NOT OK: 1 error")


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.parquet"])
def test_rows_come_from_files_and_are_compared(name, folder, no_lab):
    assert report_on(folder, train=name).ok
    report = report_on(folder, train=name, heldout="same.jsonl")
    assert {finding.code for finding in report.errors} == {"leak"}


BAD_ROWS = {
    "no such file": ("none.jsonl", "There is no file 'none.jsonl'. Pass"),
    "another ending": ("rows.txt", "'rows.txt' ends in '.txt'; rows are read from .jsonl, .json, .csv"),
    "no Parquet": ("bad.parquet", "bad.parquet cannot be read as Parquet: "),
    "a broken line": ("bad.jsonl", "bad.jsonl, line 2 is not valid JSON"),
    "a line that is a list": ("list.jsonl", "list.jsonl is a list, but each line of .jsonl must be an object"),
    "an object": ("object.json", "object.json contains a dict; write a list of rows"),
    "a comma too many": ("ragged.csv", "ragged.csv, line 2 has more fields than the header"),
}


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.parquet"])
def test_rows_are_checked_without_a_config(name, folder):
    Dataset.from_list(ROWS).to_parquet(folder / "rows.parquet")
    assert not preflight_file(folder / name).findings
    (folder / "uneven.jsonl").write_text(
        "\n".join(map(json.dumps, [*ROWS, {**ROWS[0], "answer": ""}, {"solution": "4"}]))
    )
    assert preflight_file(folder / "uneven.jsonl").codes == {"no_prompt", "bad_answer", "empty_column"}


def test_rows_without_a_config_are_described_for_whoever_writes_the_reward(folder):
    boxed = [
        {"prompt": row["prompt"], "ground_truth": f"{'We think. ' * 9}\\boxed{{{n}}}"} for n, row in enumerate(ROWS)
    ]
    for name, rows, said in (
        ("plain", [{"prompt": row["prompt"], "level": 1} for row in ROWS], "no column has the name of a gold answer"),
        (
            "gaps",
            [{**row, "secret": "x" * (n % 2)} for n, row in enumerate(ROWS)],
            "'secret' is empty in 35 of 70 rows",
        ),
        ("boxed", boxed, "whole solution with \\boxed{} in 70 of 70 rows"),
    ):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        report = preflight_file(folder / f"{name}.jsonl")
        assert not report.findings and said in str(report), str(report)
    (folder / "two.jsonl").write_text(json.dumps({"instruction": "Name it.", "input": "A fever.", "output": "flu"}))
    assert "make 'prompt' of 'instruction' and 'input'" in str(preflight_file(folder / "two.jsonl"))


@pytest.mark.parametrize(("name", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_one_sentence(name, message, folder):
    with pytest.raises(CourseError, match=re.escape(message)):
        read_rows(name, folder, "train")


BAD_REWARDS = {
    "a misspelled name": ("acuracy_reward", "Did you mean 'accuracy_reward'?"),
    "a name of open-r1": ("accuracy", "only open-r1's script reads"),
    "no such module": ("nothing.right", "nothing cannot be imported: ModuleNotFoundError"),
    "an import that fails": ("broken.right", "No module named 'no_such_package'"),
    "no such function": ("mine.rigth", "Did you mean 'right'? Functions there:"),
    "no function": ("mine.number", "'number' in mine is a int, not a function."),
    "no such file": ("nine.py:right", "There is no file 'nine.py'"),
}


@pytest.mark.parametrize(("name", "message"), BAD_REWARDS.values(), ids=BAD_REWARDS)
def test_a_reward_that_cannot_be_found_is_a_finding_next_to_others(name, message, folder):
    report = report_on(folder, "num_generations: 7", rewards=(name, "mine.py:right"))
    assert message in str(report), str(report)
    assert {finding.code for finding in report.errors} == {"reward_not_found", "batch"}, str(report)


def test_a_reward_next_to_the_folder_of_the_config_says_where_to_run(folder, monkeypatch):
    (folder / "configs").mkdir()
    (folder / "elsewhere").mkdir()
    (folder / "configs" / "config.yaml").write_text(SOUND.replace("mine.py:right", "mine.right"))
    monkeypatch.chdir(folder / "elsewhere")
    report = preflight_file(folder / "configs" / "config.yaml")
    assert "reward_not_found" in report.codes and f"mine.py is in {str(folder)!r}" in str(report)
    monkeypatch.chdir(folder)
    assert preflight_file(Path("configs", "config.yaml")).ok


#: The least that a config of another tool has, and the tool.
FOREIGN = {
    "axolotl": "base_model: Qwen/Qwen3-0.6B\nrl: grpo\ntrl: {num_generations: 4}",
    "ms-swift": "rlhf_type: grpo\nmodel: Qwen/Qwen3-0.6B\nreward_funcs: [accuracy]\nnum_generations: 4",
    "verl": "algorithm:\n  adv_estimator: grpo\ndata:\n  train_batch_size: 8",
    "LLaMA-Factory": "stage: ppo\nfinetuning_type: lora\nlearning_rate: 1.0e-5",
    "OpenRLHF": "pretrain: Qwen/Qwen3-0.6B\nadvantage-estimator: group_norm",
    "prime-rl": "orchestrator:\n  group_size: 16",
    "NeMo RL": "grpo:\n  num_prompts_per_step: 8\n  num_generations_per_prompt: 4\npolicy: {}",
}


@pytest.mark.parametrize(("tool", "text"), FOREIGN.items(), ids=FOREIGN)
def test_a_config_of_another_tool_is_recognized_before_anything_is_imported(tool, text, folder, monkeypatch):
    def imported(*names):
        raise AssertionError("the packages of a run were asked for")

    monkeypatch.setattr("grpo_check.preflights.config_file.require", imported)
    (folder / "config.yaml").write_text(text)
    with pytest.raises(CourseError, match=f"is a config for {tool} "):
        preflight_file(folder / "config.yaml")


SECTIONS = """
model: {name_or_path: MODEL, max_length: 2048, dtype: float32}
lora: {r: 8, alpha: 16}
training:
  lr: 1.0e-5
  learning_rate: 2.0e-3
  num_generations: 7
  per_device_train_batch_size: 8
  max_completion_length: 32
  use_cpu: true
  bf16: false
eval: {temperature: 0.0, max_completion_length: 2048}
judge: {model: mine, temperature: 0.0}
search: {trials: 20, space: {learning_rate: [1.0e-6, 1.0e-4]}}
"""


def test_a_config_with_sections_is_checked_as_far_as_it_is_clear(folder, no_lab):
    """Each section was an unknown key with a suggestion by spelling: 'training' for 'streaming'."""
    (folder / "config.yaml").write_text(SECTIONS.replace("MODEL", TINY))
    report = preflight_file(folder / "config.yaml", train="addition.jsonl")
    assert report.codes == {"batch"} and report.estimate, str(report)
    assert "model.max_length, training.lr (learning_rate in TRL), eval, judge, search" in str(report)


def test_a_value_that_two_sections_set_differently_is_not_checked(folder, no_lab):
    (folder / "config.yaml").write_text("grpo: {seed: 1, temperature: 0.0}\nargs: {seed: 1, temperature: 1.0}")
    report = preflight_file(folder / "config.yaml")
    assert "temperature_zero" not in report.codes and "several values: temperature" in str(report)


def test_keys_of_open_r1_are_one_finding_next_to_others(folder, no_lab):
    more = "system_prompt: Think.\ndataset_prompt_column: problem\nbenchmarks: []\nwarmup_ratio: 0.1"
    report = report_on(folder, more, rewards=("tag_count", "mine.py:right"))
    assert report.ok and {"unknown_argument", "reward_not_found"} <= report.codes
    (keys,) = (one for one in report.findings if one.code == "unknown_argument")
    assert "system_prompt, dataset_prompt_column, benchmarks, warmup_ratio (removed from TRL)" in keys.what


def test_a_typo_stays_an_error_in_a_file_of_another_script(folder, no_lab):
    report = report_on(folder, "system_prompt: Think.\nlearning_rat: 1.0e-5")
    assert any("'learning_rat'" in one.what and "learning_rate" in str(one) for one in report.errors)


def test_of_a_sweep_the_first_values_are_checked(folder, no_lab):
    (folder / "sweep.yaml").write_text(
        "program: train.py\nmethod: grid\nparameters:\n  num_generations: {values: [7, 8]}\n  style: {value: short}\n"
        "  use_cpu: {value: true}\n  bf16: {value: false}\n  learning_rate: {min: 1.0e-6, max: 1.0e-5}\n"
    )
    report = preflight_file(folder / "sweep.yaml")
    assert [one.code for one in report.errors] == ["batch"] and "style not at all" in str(report)


def test_a_switch_that_is_off_is_no_text_of_the_wrong_type(folder, no_lab):
    assert report_on(folder, "resume_from_checkpoint: false").ok
    assert not report_on(folder, "save_strategy: false").ok


def test_a_file_of_rows_that_cannot_be_read_stops_no_other_check(folder, no_lab):
    report = report_on(folder, "num_generations: 7", train="bad.jsonl", heldout="none.jsonl")
    assert {one.code for one in report.errors} == {"unreadable_rows", "batch"}, str(report)
    assert len([one for one in report.errors if one.code == "unreadable_rows"]) == 2


@pytest.mark.parametrize("text", ["a: &a [1]\nb: [*a]\nc: " + "[" * 4_000, "x: &x [*x, *x]"], ids=["deep", "endless"])
def test_a_file_that_is_made_to_be_huge_is_one_sentence(text, folder, grpo_check):
    (folder / "config.yaml").write_text(text)
    code, out, err = grpo_check("preflight", "config.yaml")
    assert code == 2 and not out and err.startswith("Error: config.yaml is not valid YAML") and err.count("\n") == 1


def test_advice_on_a_file_has_its_words(folder, no_lab):
    report = report_on(folder, "top_k: 1\nnum_generations: 7")
    fixes = " ".join(fix for one in report.findings for fix in one.fixes)
    assert "top_k: 0" in fixes and "=" not in fixes, fixes


def test_keys_of_your_own_script_are_one_finding(tmp_path, no_lab):
    """Without the project next to it, nothing says what a template's own settings mean."""
    report = preflight_file(Path(shutil.copy(ROOT / "templates/basic_grpo/config.cpu.yaml", tmp_path)))
    [finding] = [one for one in report.findings if one.code == "unknown_argument"]
    assert finding.severity == "warning" and "script of your own" in finding.fixes[0]
    assert "train_rows, eval_rows, eval_batch" in finding.what


def test_a_config_that_a_template_has_for_trl_is_checked(monkeypatch, no_lab):
    monkeypatch.chdir(ROOT / "templates" / "basic_grpo")
    report = preflight_file(Path("configs", "trl.yaml"))
    assert "unknown_argument" not in report.codes and "model_missing" in report.codes  # its folder is made by a run


def test_a_model_that_is_not_there_is_asked_for_once(folder, monkeypatch, no_lab):
    from transformers import AutoConfig, AutoTokenizer

    asked = []

    def missing(name, **kwargs):
        asked.append(name)
        raise OSError("it is not there")

    for kind in (AutoConfig, AutoTokenizer):
        monkeypatch.setattr(kind, "from_pretrained", missing)
    report = report_on(folder, "model_name_or_path: owner/name", without="model_name")
    assert asked == ["owner/name"] and "model_missing" in report.codes, str(report)
    assert report.skipped["chat template, tokens and lengths"] == "the model cannot be loaded"


#: What asking the Hub for a model ends with, whether the Hub can be reached, and whether the model is then missing.
ANSWERS = {
    "no such model": ("RepositoryNotFoundError", True, True),
    "no configuration in it": ("RemoteEntryNotFoundError", True, True),
    "a login is needed": ("GatedRepoError", True, False),
    "an error of the Hub": ("HfHubHTTPError", True, False),
    "not in the cache": ("LocalEntryNotFoundError", False, False),
}


@pytest.mark.parametrize(("answer", "reached", "missing"), ANSWERS.values(), ids=ANSWERS)
def test_a_model_is_missing_only_if_the_hub_says_so(answer, reached, missing, folder, monkeypatch, no_lab):
    """Without a network, sound configs were called NOT OK."""
    from huggingface_hub import errors
    from transformers import AutoConfig

    def asked(name, **kwargs):
        assert kwargs["local_files_only"] == (not reached)
        kind = getattr(errors, answer)
        raise OSError(f"{name} cannot be loaded") from kind.__new__(kind)

    monkeypatch.setattr(AutoConfig, "from_pretrained", asked)
    monkeypatch.setattr(of_models, "hub_answers", lambda: reached)
    report = report_on(folder, "model_name_or_path: owner/name", without="model_name")
    assert ("model_missing" in report.codes) == missing and ("model" in report.skipped) != missing, str(report)
    assert report.ok != missing


def test_a_folder_of_another_machine_is_not_looked_for_here(folder, no_lab):
    how = dict(more="model_name_or_path: /models/mine", without="model_name")
    assert "model_missing" in report_on(folder, **how).codes
    elsewhere = report_on(folder, **how, gpu="a100")
    assert "model_missing" not in elsewhere.codes and "on this machine" in elsewhere.skipped["model"]


def test_a_tokenizer_whose_files_are_not_here_is_skipped(folder, no_lab):
    """transformers makes an empty tokenizer of a folder that has only the configuration."""
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_bytes(Path(TINY, "config.json").read_bytes())
    report = report_on(folder, "model_name_or_path: model", without="model_name")
    assert report.ok and "has no tokenizer" in report.skipped["chat template, tokens and lengths"], str(report)


def test_trls_own_rewards_are_found_by_name(folder):
    report = report_on(
        folder, "reward_funcs: [think_format_reward, get_soft_overlong_punishment]", without="reward_funcs"
    )
    assert not report.skipped.keys() & {"rewards", "the rewards"}


def test_the_command_exits_with_0_1_and_a_sentence(folder, grpo_check):
    code, out, _ = grpo_check("preflight", "sound.yaml")
    assert code == 0 and "0 errors, 0 warnings; not checked: leaks" in out, out
    more = ("--reward", "mine.py:everything", "--heldout", "rows.jsonl", "--gpu", "t4")
    code, out, err = grpo_check("preflight", "sound.yaml", *more)
    assert code == 1 and "reward_broken" in out and not err, err
    code, out, err = grpo_check("preflight", "sond.yaml")
    assert code == 2 and err.startswith("Error: There is no file 'sond.yaml'.") and not out


@pytest.mark.slow
def test_the_pages_python_passes(folder):
    """With a tiny model in place of one of the Hub, because no test has a network, and with a reward of the folder."""
    page = (HERE / "docs" / "checks.md").read_text(encoding="utf-8").replace("Qwen/Qwen3-0.6B", TINY)
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    [code] = [block for block in blocks if "import preflight\n" in block]
    code = code.replace("from my_rewards import my_reward", "from mine import right as my_reward")
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert run.stdout.strip().endswith("ok: 0 errors, 0 warnings"), run.stdout + run.stderr
