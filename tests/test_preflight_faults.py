"""Faults that a hostile review of preflight found, each with a test named after it."""

import time
from dataclasses import replace
from math import prod

import pytest
from datasets import Dataset
from test_preflight import ROWS, changed, check, load_tokenizer, on
from trl import GRPOConfig

from grpo_check.preflight import model_sizes
from grpo_check.preflight import rewards as of_rewards
from grpo_check.preflight import rows as of_rows
from grpo_check.preflight import run as of_run
from grpo_check.preflight import values as of_values
from grpo_check.preflight.checking import walk
from grpo_check.preflight.config_file import preflight_file
from grpo_check.preflight.run import plan
from grpo_check.preflight.values import Values
from grpo_utils import chat_prompt, correctness_reward
from grpo_utils.errors import CourseError
from grpo_utils.profiles import PROFILES, Gpu, parse_gpus


def reads_text(completions, answer, **kwargs):
    return [
        1.0 if f"<answer>{gold}</answer>" in c[0]["content"] else 0.0
        for c, gold in zip(completions, answer, strict=True)
    ]


def test_a_reward_that_reads_content_as_text_is_not_refused_for_a_message_without_it():
    from trl.rewards import think_format_reward

    report = check(rewards=reads_text, lab=True)
    assert "reward_weak" in report.codes and "With tools: (message.get('content') or '')" in str(report), str(report)
    assert not [f for f in report.errors if "calls this raises" in f.why], str(report)
    assert check(rewards=think_format_reward, lab=True).ok


def countdown(completions, target, nums, **kwargs):
    """Pays an equation of the numbers that gives the target."""
    wanted = [f"<answer>{'*'.join(map(str, some))}</answer>" for some in nums]
    return [1.0 if text in c[0]["content"] else 0.0 for c, text in zip(completions, wanted, strict=True)]


def test_a_task_without_gold_answers_is_not_called_dead():
    rows = [{"prompt": row["prompt"], "target": prod((n, 7)), "nums": [n, 7]} for n, row in enumerate(ROWS)]
    report = check(rewards=countdown, train=rows, heldout=None, lab=True)
    assert report.ok and "the reward lab reports dead" in str(report), str(report)
    assert "answer_column='…'" in str(report) and "lab=False" in str(report) and "examples=" not in str(report)
    report = check(rewards=countdown, train=rows, heldout=None)
    assert report.ok and "reward_weak" not in report.codes and report.skipped["reward lab"] == "lab=False"


def pays_all(completions, answer, **kwargs):
    return [1.0 for _ in completions]


def test_a_dead_reward_that_reads_the_answers_stays_an_error():
    report = check(rewards=pays_all, lab=True)
    assert {f.code for f in report.errors} == {"reward_broken"}, str(report)
    both = check(rewards=[pays_all, reads_text], arguments={"reward_weights": None}, lab=True)
    assert {f.code for f in both.errors} == {"reward_broken"}, str(both)


def pays_tags(completions, answer, **kwargs):
    """Partial credit: a form that depends on the gold answer, whose value is not looked at."""
    return [float(bool(gold) and "<answer>" in c[0]["content"]) for c, gold in zip(completions, answer, strict=True)]


def test_partial_credit_is_no_error_next_to_a_reward_that_ranks_correct_answers_first():
    """The form of an answer earned as much with a wrong value, so a sound run with partial credit was refused."""
    for rewards in ([correctness_reward, pays_tags], [pays_tags, correctness_reward, pays_tags]):
        report = check(rewards=rewards, arguments={"reward_weights": None}, lab=True)
        found = [one for one in report.findings if "reports wrong_beats_right" in one.why]
        assert report.ok and found and all("partial credit" in one.fixes[0] for one in found), str(report)


def prefers_wrong(completions, answer, **kwargs):
    return [1.0 - score for score in correctness_reward(completions, answer)]


def compares_the_gold_with_itself(completions, answer, **kwargs):
    return [score * float(gold == gold) for score, gold in zip(pays_tags(completions, answer), answer, strict=True)]


@pytest.mark.parametrize(
    ("rewards", "weights"),
    [
        ([pays_tags], None),
        ([compares_the_gold_with_itself, pays_tags], None),
        ([correctness_reward, pays_tags], [0.0, 1.0]),
        ([correctness_reward, pays_tags], [-1.0, 0.5]),
        ([correctness_reward, prefers_wrong], [2.0, 1.0]),
        (["some/reward-model", correctness_reward, pays_tags], [1.0, -1.0, 1.0]),
    ],
    ids=["alone", "no reward reads the value", "no weight", "a sign error", "wrong earns more", "next to a model"],
)
def test_partial_credit_is_an_error_if_nothing_ranks_correct_answers_first(rewards, weights):
    report = check(rewards=rewards, arguments={"reward_weights": weights}, lab=True)
    assert any("reports wrong_beats_right" in one.why for one in report.errors), str(report)


def sleepy(completions, answer, **kwargs):
    time.sleep(0.05 * len(completions))
    return [0.0 for _ in completions]


def test_a_slow_reward_is_left_to_the_probe(monkeypatch):
    monkeypatch.setattr(of_rewards, "LAB_SECONDS", 0.2)
    report = check(rewards=sleepy, lab=True)
    assert report.ok and "grpo-check probe" in report.skipped["reward lab"], str(report)


def test_an_added_token_that_no_text_uses_is_no_mismatch():
    tokenizer = load_tokenizer()
    tokenizer.add_tokens(["<image_soft_token>"], special_tokens=True)
    assert check(tokenizer).ok
    used = changed(ROWS, prompt=chat_prompt("What is <image_soft_token>?"))
    assert "tokenizer_mismatch" in {f.code for f in check(tokenizer, train=used).errors}


def texts(tokenizer, render):
    return [{**row, "prompt": render(row["prompt"])} for row in ROWS]


def test_a_prompt_that_is_rendered_already_is_no_string_prompt():
    tokenizer = load_tokenizer()
    rendered = texts(tokenizer, lambda p: tokenizer.apply_chat_template(p, add_generation_prompt=True, tokenize=False))
    assert "string_prompt" not in check(tokenizer, train=rendered).codes


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("Qwen2.5-0.5B", "warning"),
        ("Qwen2.5-0.5B-Instruct", "error"),
        ("gemma-3-1b-it", "error"),
    ],
)
def test_text_prompts_to_a_base_model_with_a_template_are_a_warning(name, severity, tmp_path):
    from transformers import AutoConfig

    from grpo_utils import model_path

    AutoConfig.from_pretrained(model_path("tiny-qwen3")).save_pretrained(tmp_path / name)
    rows = texts(load_tokenizer(), lambda prompt: prompt[-1]["content"])
    report = check(model=str(tmp_path / name), train=rows, heldout=None)
    assert {(f.code, f.severity) for f in report.findings} >= {("string_prompt", severity)}, str(report)


ASKED = [{"role": "user", "content": "What is 0 + 1?"}]
OTHER = [{"role": "system", "content": "Answer in French."}, *ASKED]


@pytest.mark.parametrize(
    ("row", "leaks"),
    [
        ({"prompt": OTHER, "answer": "1"}, False),
        (ROWS[0] | {"answer": "2"}, False),
        (ROWS[0], True),
        ({"prompt": ROWS[0]["prompt"]}, True),
    ],
    ids=["another system prompt", "another answer", "the same", "no answer"],
)
def test_a_leak_is_the_same_prompt_and_answer(row, leaks):
    found = of_rows.leak(plan({}, train=ROWS, heldout=[row]))
    assert [one.code for one in found] == ["leak"] * leaks


def test_equal_questions_about_different_images_are_no_leak():
    rows = [{**row, "prompt": ROWS[0]["prompt"], "answer": "yes", "image": n} for n, row in enumerate(ROWS)]
    report = check(train=rows, heldout=rows[:4])
    assert not report.codes & {"leak", "duplicates"} and "images are not compared" in str(report)


@pytest.mark.parametrize(
    "prompt",
    [
        [{"role": "user", "content": "What is 1 + 2?"}, {"role": "assistant", "content": "It is "}],
        [{"role": "system", "content": "Write a riddle."}],
    ],
    ids=["prefill", "system only"],
)
def test_prompts_that_trl_accepts_are_no_bad_prompts(prompt):
    assert check(train=changed(ROWS, prompt=prompt)).ok


def test_the_mend_for_a_blank_answer_drops_it():
    rows = Dataset.from_list(changed(ROWS, answer=" "))
    report = check(train=rows)
    condition = str(report).partition("rows.filter(lambda row: ")[2].partition(").\n")[0]
    kept = rows.filter(lambda row: eval(condition, {"row": row}))
    assert len(kept) == len(ROWS) - 1 and check(train=kept).ok


def test_gold_answers_of_another_name_are_renamed_whatever_columns_stand_beside_them():
    def reward(completions, solution, **kwargs):
        return [float(text == gold) for text, gold in zip(completions, solution, strict=True)]

    def hard(completions, difficulty, **kwargs):
        return [0.0 for _ in completions]

    rows = [row | {"kind": "carry"} for row in ROWS]
    assert "rows.rename_column('answer', 'solution')" in str(check(train=rows, rewards=[reward]))
    assert "rename_column" not in str(check(train=rows, rewards=[hard]))


def test_an_empty_cell_is_not_called_a_missing_column():
    report = check(train=changed(ROWS, prompt=None))
    assert "no_prompt" in report.codes and "KeyError" not in str(report) and "rename_column" not in str(report)


def test_of_sixty_thousand_rows_some_are_looked_at():
    many = Dataset.from_list([{"prompt": chat_prompt(f"What is {n} + 1?"), "answer": str(n)} for n in range(60_000)])
    report = check(train=many)
    assert report.ok and "3000 of 60000 train rows, evenly spread" in str(report), str(report)
    assert "(3000 of 60000 rows)" in str(report)


def test_images_are_not_read_to_check_the_prompts():
    from datasets import Image

    images = Dataset.from_list([{**row, "image": {"path": "not/there.png"}} for row in ROWS]).cast_column(
        "image", Image()
    )
    with pytest.raises(FileNotFoundError):
        images[0]
    run = plan({}, train=images)
    assert not [finding for rule in of_rows.RULES if "both splits" not in rule.needs for finding in rule(run)]


def configs():
    from transformers import BloomConfig, GPT2Config, T5Config, ViTConfig

    small = {"n_layer": 2, "n_head": 2}
    return [GPT2Config(n_embd=32, **small), BloomConfig(hidden_size=32, **small), T5Config(d_model=32), ViTConfig()]


@pytest.mark.parametrize("number", range(4), ids=["GPT-2", "Bloom", "T5", "ViT"])
def test_a_family_whose_sizes_are_not_known_is_skipped_and_told(number):
    report = check(model=configs()[number])
    assert report.estimate is not None or "are not known" in report.skipped["memory and minutes"], str(report)
    if report.estimate is None:
        with pytest.raises(CourseError, match="are not known"):
            model_sizes(configs()[number])


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


def test_a_function_without_a_signature_is_a_finding():
    report = check(rewards=[max])
    assert [f.code for f in report.errors] == ["not_a_reward"], str(report)
    assert "max has no signature that Python can read" in str(report)


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


@pytest.mark.parametrize(("more", "said"), [({}, "searched for dup"), ({"image": None}, "did not search for dup")])
def test_the_notes_on_rows_with_images_do_not_contradict_each_other(more, said, monkeypatch):
    monkeypatch.setattr(of_rows, "MOST_COMPARED", 4)
    notes = [*of_rows.notes(plan({}, train=[row | more for row in ROWS]))]
    assert len(notes) == 1 and notes[0].startswith(said)


#: Values that YAML reads as a string, and what to write instead.
QUOTED = {
    ("max_completion_length", "512"): "max_completion_length: 512 instead",
    ("learning_rate", "1e-5"): "learning_rate: 1.0e-05 instead",
    ("use_cpu", "yes"): "use_cpu: True instead",
}


@pytest.mark.parametrize(("name", "text"), QUOTED)
def test_a_value_in_quotes_is_named_with_its_reason_and_stays_a_whole_number(name, text):
    values = Values({name: text}, (GRPOConfig,), from_yaml=True)
    [finding] = walk(plan(values), of_values.RULES)[0]
    assert finding.code == "text_number" and "quotes" in finding.why
    assert finding.fixes == (f"write {QUOTED[name, text]}.",)


def test_a_length_with_a_point_is_no_error_since_trl_takes_it():
    assert check(arguments={"max_completion_length": 32.0}).ok
