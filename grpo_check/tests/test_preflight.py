"""Preflight: wrong configurations are refused in seconds with the fix, right ones pass, and TRL agrees."""

import re
from pathlib import Path

import pytest
import yaml
from grpo_check.packages import trl_is_at_least
from grpo_check.preflights import arguments as of_arguments
from grpo_check.preflights import misfits
from grpo_check.preflights.checking import RULES, preflight
from grpo_check.preflights.planned import KEEPS_INIT_KWARGS, PlannedRun, plan
from grpo_check.probes.judging.examples import form_outweighs
from grpo_check.probes.judging.rules import RULES as OF_PROBE
from grpo_core.errors import CourseError
from grpo_core.gpus import Gpu
from places import ROOT
from preflight_runs import (
    HELDOUT,
    REWARDS,
    ROWS,
    TINY,
    WEIGHTS,
    changed,
    check,
    load_tokenizer,
    on,
    seven_billion,
    sound_tokenizer,
    write_addition,
)

from grpo_utils import chat_prompt, load_rows, model_path
from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU, PROFILES
from grpo_utils.rewards import exact_reward

SOLVED = [{**row, "solution": "1"} for row in ROWS]
NAMED = [{**row, "prompt": chat_prompt(f"What is {n} + 1? (gold: {n + 1})")} for n, row in enumerate(ROWS)]
RTX_3060 = Gpu("NVIDIA GeForce RTX 3060", 12.0, 8.6)


def no_kwargs(completions, answer):
    return [0.0 for _ in completions]


def wants_solution(completions, solutions, **kwargs):
    return [0.0 for _ in completions]


LONG = chat_prompt("What is 1 + 2? " * 400)


#: Findings that come with another, since both are true.
ALSO = {
    "no_rows": {"too_few_rows"},
    "no_prompt": {"leak"},
    "template_without_eos": {"pad_is_eos"},
    "prefilled_think": {"short_thoughts"},
}


def test_the_sound_run_has_no_finding():
    report = check()
    assert report.ok and not report.codes and not report.skipped.keys() - {"the rewards"}, str(report)


def test_unsloth_takes_what_the_card_can():
    assert not check(**on("t4", bf16=None, fp16=False)).codes
    assert not plan({}, backend="unsloth").older_than_ampere  # no card is named: this never ended


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_each_rule_finds_its_example(rule, tmp_path):
    if rule.code == "init_kwargs_discarded" and trl_is_at_least(KEEPS_INIT_KWARGS):
        pytest.skip("this TRL discards nothing")
    report = report_on_example(rule.example, tmp_path)
    assert report.codes - ALSO.get(rule.code, set()) == {rule.code}, str(report)
    for finding in report.findings:
        assert finding.what and finding.why and finding.fixes
        assert finding.severity == rule.severity or finding.code != rule.code


def report_on_example(example, folder):
    """The report on the sound run with a rule's example."""
    if "keys" in example:
        return report_on_keys(example["keys"], folder)
    tokenizer, changes = prepared(example)
    if "row" in changes:
        changes["train"] = changed(ROWS, **changes.pop("row"))
    if "vocabulary" in changes:
        from transformers import AutoConfig

        changes["model"] = AutoConfig.from_pretrained(model_path("tiny-qwen3"), vocab_size=changes.pop("vocabulary"))
    if "gemma" in changes.get("model", ""):  # the Hub is out of reach
        changes["model"] = model_path("tiny-gemma3")
    settings = {name: changes.pop(name) for name in list(changes) if name in PlannedRun.__dataclass_fields__}
    return check(tokenizer, changes, **settings)


def report_on_keys(keys, folder):
    """The report on a sound config file with some keys changed; its reward is not tried."""
    from grpo_check.preflights.config_file import preflight_file

    sound = {"model_name_or_path": TINY, "dataset_name": write_addition(folder).name, "use_peft": True, "use_cpu": True}
    sound |= {"bf16": False, "learning_rate": 2e-3, "max_completion_length": 32, "reward_funcs": None}
    (folder / "config.yaml").write_text(yaml.safe_dump({**sound, **keys}), encoding="utf-8")
    return preflight_file(folder / "config.yaml", rewards=["grpo_utils.correctness_reward"])


#: What is changed in the sound run, the code of the error, and a piece of the fix.
WRONG = {
    "a removed argument": ({"arguments": {"max_prompt_length": 96}}, "unknown_argument", "filter the dataset"),
    "an argument of the trainer": (
        {"arguments": {"rollout_func": print}}, "unknown_argument", "pass rollout_func=… to GRPOTrainer",
    ),
    "a model among the arguments": (
        {"arguments": {"model": "Qwen/Qwen3-0.6B"}}, "unknown_argument", "pass model=… to GRPOTrainer",
    ),
    "a dataset among the arguments": (
        {"arguments": {"dataset": "rows"}}, "unknown_argument", "pass train_dataset=… to GRPOTrainer",
    ),
    "another removed argument": ({"arguments": {"warmup_ratio": 0.1}}, "unknown_argument", "warmup_steps=0.1"),
    "a switch that is a text": ({"arguments": {"use_cpu": "yes"}}, "wrong_type", "use_cpu=True"),
    "eval_strategy: no, from YAML": ({"arguments": {"eval_strategy": False}}, "wrong_type", "'no' with quotes"),
    "no temperature": ({"arguments": {"temperature": None}}, "wrong_type", "the default is 1.0"),
    "no epochs": ({"arguments": {"max_steps": -1, "num_train_epochs": 0}}, "out_of_range", "num_train_epochs=1"),
    "a rate of zero": ({"arguments": {"learning_rate": 0.0}}, "out_of_range", "set learning_rate to a value above 0"),
    "a negative beta": ({"arguments": {"beta": -0.1}}, "out_of_range", "set beta to a value of at least 0"),
    "an unknown scaling": ({"arguments": {"scale_rewards": "groups"}}, "unknown_choice", "Did you mean 'group'"),
    "an unknown optimizer": ({"arguments": {"optim": "adam8bit"}}, "refused", "adamw_torch"),
    "one completion a prompt": ({"arguments": {"num_generations": 1}}, "out_of_range", "a value of at least 2"),
    "a group that is cut on three processes": (
        {"arguments": {"per_device_train_batch_size": 4}, "processes": 3},
        "batch", "per_device_train_batch_size=8 or a multiple",
    ),
    "a generation batch that does not fit": (
        {"arguments": {"generation_batch_size": 24}, "without": ["steps_per_generation"]},
        "refused", "generation_batch_size (24) must be divisible by the global batch size (16)",
    ),
    "two sizes of one thing": ({"arguments": {"generation_batch_size": 16}}, "refused", "can not be both configured"),
    "an evaluation batch that is cut": (
        {"arguments": {"eval_strategy": "steps", "per_device_eval_batch_size": 12}},
        "refused", "The global eval batch size (12 * 1) must be divisible",
    ),
    "the likeliest token alone": ({"arguments": {"top_k": 1}}, "temperature_zero", "top_k=0"),
    "a logger that is not there": ({"arguments": {"report_to": "trackio"}}, "report_to", "pip install trackio"),
    "too few weights": ({"rewards": REWARDS}, "reward_weights", "reward_weights=[1.0, 1.0, 1.0]"),
    "a column that is not there": (
        {"rewards": wants_solution, "train": SOLVED, "arguments": {"reward_weights": None}},
        "missing_column", "rows.rename_column('answer', 'solutions')",
    ),
    "too few rows": ({"train": ROWS[:1]}, "too_few_rows", "at least 2 rows"),
    "no prompt column": (
        {"train": [{"question": "What?", "answer": "1"}] * 8}, "no_prompt", "rows.rename_column('question', 'prompt')",
    ),
    "whole chats": (
        {"train": [{"messages": ROWS[0]["prompt"], "answer": "1"}] * 8}, "no_prompt", "row['messages'][:-1]",
    ),
    "an empty answer": ({"train": changed(ROWS, answer=" ")}, "bad_answer", "train row 3 of 40"),
    "a template that drops what is said": (
        {"tokenizer": {"chat_template": "{% for m in messages %}{{ m.role }}{% endfor %}"}},
        "template_fails", "of the model's family",
    ),
    "a prompt in parts": (
        {"train": changed(ROWS, prompt=[{"role": "user", "content": [{"type": "text", "text": "hi"}]}])},
        "template_fails", "make each content plain text",
    ),
    "prompts beyond the context": (
        {"train": changed(ROWS, prompt=LONG)}, "prompt_too_long", "drop the rows whose prompt has more than 992 tokens",
    ),
    "no such model": ({"model": "outputs/no/model"}, "model_missing", "that is cached"),
    "TRL's default on a T4": (
        on("t4", bf16=None, fp16=False) | {"backend": "transformers"}, "bf16_gpu", "fp16=True and bf16=False",
    ),
    "both precisions": (on("l4", bf16=True), "refused", "At most one of fp16 and bf16"),
    "FlashAttention on a T4": (
        on("t4", model_init_kwargs={"attn_implementation": "flash_attention_2"}), "flash_attention", "'sdpa'",
    ),
    "more memory than there is": (
        {**on(RTX_3060, per_device_train_batch_size=64, max_completion_length=900), "model": "seven_billion"},
        "memory", "in this order: lower per_device_train_batch_size",
    ),
}  # fmt: skip


def prepared(changes):
    """The changes with what is made only when a test runs."""
    changes, tokenizer = dict(changes), load_tokenizer()
    for name, value in changes.pop("tokenizer", {}).items():
        setattr(tokenizer, name, value)
    if changes.get("model") == "seven_billion":
        changes["model"] = seven_billion()
    return tokenizer, changes


@pytest.mark.parametrize(("changes", "code", "fix"), WRONG.values(), ids=WRONG)
def test_a_wrong_configuration_is_refused_with_the_fix(changes, code, fix):
    tokenizer, changes = prepared(changes)
    report = check(tokenizer, **changes)
    assert not report.ok and code in report.codes, str(report)
    assert {finding.code for finding in report.errors} - ALSO.get(code, set()) == {code}, str(report)
    with pytest.raises(CourseError) as error:
        report.stop_on_errors()
    assert fix in str(error.value), str(report)


#: Settings that run and deserve a word: the code and a piece of the fix.
DOUBTFUL = {
    "TRL's rate for an adapter": ({"without": ["learning_rate"]}, "learning_rate", "learning_rate=1e-5"),
    "a high rate for all weights": (
        {"arguments": {"learning_rate": 5e-5}, "lora_rank": 0, "load_in_4bit": False, "model": ""},
        "learning_rate", "set learning_rate=1e-6",
    ),
    "cispo alone": ({"arguments": {"loss_type": "cispo"}}, "loss_incomplete", "epsilon_high=5.0"),
    "an answer that is a number": ({"heldout": changed(HELDOUT, answer=7)}, "answer_not_text", "str(row['answer'])"),
    "a long prompt": (
        {"train": changed(ROWS, prompt=chat_prompt("What is 1 + 2? " * 20))}, "long_prompts", "95%: 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "code", "fix"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_doubtful_configuration_is_a_warning(changes, code, fix):
    tokenizer, changes = prepared(changes)
    report = check(tokenizer, **changes)
    assert report.ok and report.codes == {code}, str(report)
    assert fix in str(report)
    report.stop_on_errors()


def test_what_grpoconfig_rejects_is_not_repeated_after_any_error_of_the_arguments():
    [last] = [rule for rule in RULES if rule.code == "refused"]
    errors = {rule.code for rule in (*misfits.RULES, *of_arguments.RULES) if rule.severity == "error"}
    assert {*last.unless} == errors - {"refused", "model_refused", "unknown_argument"}


def test_a_template_that_fails_on_one_prompt_is_still_asked_how_it_ends_a_turn():
    parts = changed(ROWS, prompt=[{"role": "user", "content": [{"type": "text", "text": "hi"}]}])
    tokenizer, changes = prepared({"tokenizer": {"eos_token": "<|endoftext|>"}, "train": parts})
    assert check(tokenizer, **changes).codes >= {"template_fails", "template_without_eos"}


@pytest.mark.parametrize(
    "changes", [{}, {"lora_rank": 0, "load_in_4bit": False}, {"model": model_path("tiny-gemma3")}], ids=str
)
def test_the_fix_for_bf16_on_an_old_card_leads_into_no_other_error(changes):
    given = {**on("t4", bf16=True, fp16=False), **changes}
    [finding] = check(**given).errors
    fp16, dtype = "fp16=True" in finding.fixes[0], "float32" if "float32" in finding.fixes[0] else "float16"
    fixed = given["arguments"] | {"bf16": False, "fp16": fp16}
    assert finding.code == "bf16_gpu" and check(**{**given, "arguments": fixed, "dtype": dtype}).ok


def test_memory_near_the_limit_is_a_warning():
    tight = on("l4", per_device_train_batch_size=8)
    report = check(**{**tight, "model": seven_billion(), "backend": "transformers"})
    assert report.ok and "memory_tight" in report.codes, str(report)


@pytest.mark.parametrize(("rate", "model", "is_found"), [(5e-5, "", True), (2e-5, "", False), (2e-3, TINY, False)])
def test_a_rate_for_all_weights_is_high_above_that_of_published_runs_unless_the_model_is_tiny(rate, model, is_found):
    report = check(arguments={"learning_rate": rate}, lora_rank=0, load_in_4bit=False, model=model)
    assert ("learning_rate" in report.codes) == is_found, str(report)


@pytest.mark.parametrize(
    ("mode", "backend", "is_found"),
    [("server", "transformers", True), ("colocate", "transformers", True), ("server", "unsloth", False)],
)
def test_four_bits_are_doubted_where_trl_sends_them_to_vllm(mode, backend, is_found):
    report = check(**on("l4", use_vllm=True, vllm_mode=mode), backend=backend)
    assert report.ok and ("vllm_four_bits" in report.codes) == is_found, str(report)


@pytest.mark.parametrize(
    ("mode", "limit", "severities"),
    [("colocate", 16, ["error"]), ("colocate", 60, ["warning"]), ("colocate", 76, []), ("server", 16, [])],
)
def test_prompts_and_completions_must_fit_into_vllms_own_limit(mode, limit, severities):
    """The prompts have 44 tokens, and a completion up to 32."""
    report = check(**on("l4", use_vllm=True, vllm_mode=mode, vllm_max_model_length=limit))
    assert [one.severity for one in report.findings if one.code == "vllm_length"] == severities, str(report)


def test_the_arguments_of_the_trainer_are_those_of_trl():
    import inspect

    from trl import GRPOTrainer

    assert set(misfits.OF_THE_TRAINER) == set(inspect.signature(GRPOTrainer.__init__).parameters) - {"self"}


def test_a_vllm_in_the_same_process_reserves_its_share():
    with_it = check(**on("l4", use_vllm=True, vllm_gpu_memory_utilization=0.5)).estimate.memory
    assert with_it.gib - check(**on("l4")).estimate.memory.gib == pytest.approx(0.5 * 22.5)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_right_configuration_passes_on_every_profile(profile):
    tokenizer = load_tokenizer()
    tokenizer.model_max_length = 32_768
    report = preflight(
        training_arguments(profile, reward_weights=WEIGHTS),
        model=seven_billion() if profile.name in ("a100", "h100") else "",
        tokenizer=tokenizer,
        train=load_rows("addition", "train", 200),
        heldout=load_rows("addition", "test", 50),
        rewards=REWARDS,
        profile=profile,
        try_rewards=False,
    )
    assert report.ok and not report.codes - {"memory_tight"}, str(report)


@pytest.mark.parametrize("name", CPU.models.values())
def test_the_lessons_own_configurations_pass(name):
    report = preflight(
        training_arguments(CPU, max_steps=CPU.steps, reward_weights=WEIGHTS),
        model=model_path(name),
        tokenizer=load_tokenizer(name),
        train=load_rows("addition", "train", CPU.train_rows),
        heldout=load_rows("addition", "test", CPU.eval_rows),
        rewards=REWARDS,
        profile=CPU,
        load_in_4bit=True,
    )
    assert report.ok and not {one.code for one in report.findings if "reports slow" not in one.why}, str(report)
    assert report.estimate.memory.gib > 0 and report.estimate.minutes.total > 0


def test_a_config_that_was_built_is_taken_too(tmp_path):
    from trl import GRPOConfig

    arguments = training_arguments(CPU, output_dir=str(tmp_path), reward_weights=[1.0], per_device_train_batch_size=16)
    tokenizer = load_tokenizer()
    built = preflight(GRPOConfig(**arguments), tokenizer=tokenizer, train=ROWS, rewards=REWARDS[:1], try_rewards=False)
    assert built.ok and not built.codes, str(built)


CHOICES = [
    {"prompt": chat_prompt(f"{n}: (A) red (B) blue. Answer A or B."), "answer": "AB"[n % 3 == 0]} for n in range(40)
]
#: Rows whose prompts contain no gold answer, or all that are possible.
WITHOUT_GOLD = {
    "sums": ROWS,
    "choices": CHOICES,
    "too few to say": NAMED[:5],
    "one answer": [{**row, "answer": "42"} for row in ROWS],
    "part of a number": [{"prompt": chat_prompt(f"Double 1{n}9."), "answer": str(n)} for n in range(40)],
    "half of them": [*NAMED[:20], *ROWS[20:]],
}


@pytest.mark.parametrize("rows", WITHOUT_GOLD.values(), ids=WITHOUT_GOLD)
def test_prompts_that_do_not_give_the_answer_away(rows):
    assert "gold_in_prompt" not in check(train=rows).codes


def test_what_is_not_given_is_not_checked_and_told():
    report = preflight(training_arguments(CPU), profile=CPU)
    assert report.ok
    skipped = {"model", "rows", "chat template, tokens and lengths", "rewards", "memory and minutes"}
    assert set(report.skipped) == skipped
    assert "skipped rows: no train or heldout rows given" in str(report)
    assert str(report).splitlines()[-1].startswith("0 errors, 0 warnings; not checked: rows, model")


def test_a_reward_that_is_a_model_is_not_tried_and_told():
    rewards = ["some/reward-model", *REWARDS]
    report = check(rewards=rewards, arguments={"reward_weights": None})
    assert report.ok and "some/reward-model" in report.skipped["rewards that are models"]


def strings_only(completions, answer, **kwargs):
    from grpo_utils import correctness_reward

    texts = [completion if isinstance(completion, str) else "" for completion in completions]
    return [score or 0.0 for score in correctness_reward(texts, answer)]


def chats_only(completions, answer, **kwargs):
    from grpo_utils import correctness_reward

    return correctness_reward([completion[0]["content"] or "" for completion in completions], answer)


def test_a_weak_reward_is_a_warning_with_the_reason_and_the_fix_of_probe():
    report = check(rewards=form_outweighs, try_rewards=True)
    [weak] = [one for one in report.findings if "reports form_outweighs" in one.why]
    [of_probe] = [rule for rule in OF_PROBE if rule.code == "form_outweighs"]
    assert report.ok and weak.code == "reward_weak"
    assert weak.why.endswith(of_probe.why) and {*of_probe.fixes} < {*weak.fixes}


def test_without_functions_the_report_says_once_that_none_was_tried():
    assert not [what for what in check(rewards=[], try_rewards=True).skipped if "rewards" in what]
    judged = check(rewards=["some/reward-model"], try_rewards=True)
    assert [what for what in judged.skipped if "rewards" in what] == ["rewards that are models"], str(judged)


def test_without_rows_the_labs_own_gold_answers_are_no_reason_for_a_warning():
    report = check(rewards=exact_reward, try_rewards=True, train=None, heldout=None)
    assert not report.codes and "with gold answers of its own" in str(report), str(report)

    def broken(completions, answer, **kwargs):
        return []

    assert "reward_broken" in check(rewards=broken, try_rewards=True, train=None, heldout=None).codes


def test_what_a_reward_cannot_read_counts_only_if_the_run_has_it():
    report = check(rewards=strings_only, try_rewards=True)
    assert {finding.code for finding in report.errors} == {"other_kind"}, str(report)
    assert not check(rewards=chats_only, try_rewards=True).codes
    texts = [{**row, "prompt": row["prompt"][-1]["content"]} for row in ROWS]
    plain = dict(train=texts, heldout=None, model="", tokenizer=sound_tokenizer(), try_rewards=True)
    assert "other_kind" in check(rewards=chats_only, **plain).codes
    assert "other_kind" not in check(rewards=strings_only, **plain).codes


def test_two_processes_share_a_group():
    arguments = {"per_device_train_batch_size": 4, "num_generations": 8}
    assert check(arguments=arguments, processes=2).ok
    assert check(arguments=arguments, processes=1).codes == {"batch"}


def test_a_trainers_device_is_left_as_it_was(tmp_path):
    from accelerate.state import PartialState
    from trl import GRPOConfig

    built = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False)
    built.distributed_state._shared_state["device"] = "where the trainer will be"
    assert preflight(training_arguments(CPU), profile=CPU).ok
    assert PartialState._shared_state["device"] == "where the trainer will be"
    PartialState._reset_state()


def test_text_prompts_are_right_for_a_base_model(tmp_path):
    rows = [{"prompt": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(8)]
    folder = tmp_path / "tiny-qwen3-base"
    folder.mkdir()
    (folder / "config.json").write_bytes(Path(model_path("tiny-qwen3"), "config.json").read_bytes())
    report = check(model=str(folder), train=rows, heldout=None)
    assert report.ok and not report.codes, str(report)
    assert check(train=rows, heldout=None).codes == {"string_prompt"}


def test_answers_that_no_reward_reads_may_be_missing():
    def has_tags(completions, **kwargs):
        return REWARDS[1](completions)

    report = check(rewards=has_tags, train=changed(ROWS, answer=None))
    assert "bad_answer" not in report.codes, str(report)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arguments": 3}, "arguments=3 should be a dict"),
        ({"gpu": "t5"}, "gpu='t5' is unknown. Valid: cpu, t4"),
        ({"gpu": []}, "should be a Gpu, or one of"),
        ({"train": "abc"}, "should be a datasets.Dataset"),
        ({"train": ["a"]}, "should be a datasets.Dataset"),
        ({"tokenizer": "tiny-qwen3"}, "tokenizer='tiny-qwen3' should be a tokenizer"),
        ({"profile": "cpu"}, "profile='cpu' should be an object with the attributes name, load_in_4bit"),
        ({"backend": "unslot"}, "backend='unslot' is unknown"),
        ({"max_prompt_length": 0}, "max_prompt_length=0 should be a whole number, 1 or more"),
        ({"processes": "two"}, "processes='two' should be"),
        ({"lora_rank": -1}, "lora_rank=-1 should be a whole number, 0 or more"),
    ],
    ids=str,
)
def test_what_cannot_be_checked_is_a_course_error(given, message):
    with pytest.raises(CourseError, match=re.escape(message)):
        preflight(**{"arguments": {}, **given})


def test_a_streamed_dataset_is_a_course_error():
    with pytest.raises(CourseError, match=r"for a streamed dataset.*take\(1000\)"):
        preflight({}, heldout=load_rows("addition", "test", 4).to_iterable_dataset())


def test_no_weights_are_loaded(tmp_path):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (tmp_path / name).write_bytes((ROOT / "grpo_utils" / "tiny" / "tiny-qwen3" / name).read_bytes())
    assert check(model=str(tmp_path)).ok


def test_the_choices_are_those_of_trl():
    from importlib import metadata

    source = metadata.distribution("trl").locate_file("trl/trainer/grpo_trainer.py").read_text(encoding="utf-8")
    config = metadata.distribution("trl").locate_file("trl/trainer/grpo_config.py").read_text(encoding="utf-8")
    for name, valid in of_arguments.CHOICES.items():
        for word in (word for word in valid if isinstance(word, str)):
            assert f'"{word}"' in source or f'`"{word}"`' in config, (name, word)
    assert set(re.findall(r'self\.loss_type == "(\w+)"', source)) <= set(of_arguments.CHOICES["loss_type"])


# TRL agrees: what is an error here fails there, or learns nothing, with TRL 1.14 and with 1.16.


def train_in_trl(tmp_path, arguments=None, without=(), rewards=None, train=None, heldout=None, tokenizer=None):
    """One step of TRL on a tiny model; the trainer."""
    from datasets import Dataset
    from peft import LoraConfig
    from trl import GRPOConfig, GRPOTrainer

    given = training_arguments(
        CPU, output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=8, num_generations=4
    )
    given = {name: value for name, value in given.items() if name not in without} | (arguments or {})
    trainer = GRPOTrainer(
        model=model_path("tiny-qwen3"),
        args=GRPOConfig(**given),
        train_dataset=Dataset.from_list(ROWS if train is None else train),
        reward_funcs=list(REWARDS) if rewards is None else rewards,
        processing_class=tokenizer,
        peft_config=LoraConfig(r=8, target_modules="all-linear"),
    )
    trainer.train()
    return trainer


#: What is changed, the exception, and what it says.
FAILS = {
    "an argument of the trainer": ({"arguments": {"rollout_func": print}}, TypeError, "rollout_func"),
    "a rate that is a text": ({"arguments": {"learning_rate": "1e-5"}}, TypeError, "'float' and 'str'"),
    "max_steps=None": ({"arguments": {"max_steps": None}}, TypeError, "'NoneType' and 'int'"),
    "a negative rate": ({"arguments": {"learning_rate": -1.0}}, ValueError, "Invalid learning rate"),
    "no completion tokens": ({"arguments": {"max_completion_length": 0}}, ValueError, "max_new_tokens"),
    "no batch": ({"arguments": {"per_device_train_batch_size": 0}}, ValueError, "batch_size"),
    "an unknown loss": ({"arguments": {"loss_type": "gpro"}}, ValueError, "Unknown loss type"),
    "an unknown scaling": ({"arguments": {"scale_rewards": "groups"}}, ValueError, "scale_rewards"),
    "an unknown level": ({"arguments": {"importance_sampling_level": "seq"}}, ValueError, "importance sampling level"),
    "an unknown aggregation": ({"arguments": {"multi_objective_aggregation": "sum"}}, ValueError, "Must be"),
    "evaluation on nothing": (
        {"arguments": {"eval_strategy": "steps", "per_device_eval_batch_size": 8}}, ValueError, "eval_dataset",
    ),
    "greedy sampling": ({"arguments": {"temperature": 0.0}}, ValueError, "strictly positive float"),
    "an unknown logger": ({"arguments": {"report_to": "wandbd"}}, ValueError, "is not supported"),
    "no logger": ({"arguments": {"report_to": None}}, ValueError, "None is not supported"),
    "weights that are texts": ({"arguments": {"reward_weights": ["1.0"] * 3}}, ValueError, "dimensions 'str'"),
    "evaluation at the start on nothing": ({"arguments": {"eval_on_start": True}}, ValueError, "an eval_dataset"),
    "a batch with a point": ({"arguments": {"per_device_train_batch_size": 8.0}}, TypeError, "integer"),
    "a rate that is a list": ({"arguments": {"learning_rate": [1e-3]}}, TypeError, "'float' and 'list'"),
    "a min_p above 1": ({"arguments": {"min_p": 1.5}}, ValueError, "min_p"),
    "no repetition penalty": ({"arguments": {"repetition_penalty": 0.0}}, ValueError, "strictly positive"),
    "a turn without content": ({"train": [{"prompt": [{"role": "user"}], "answer": "1"}] * 8}, KeyError, "content"),
    "a logger that is not there": ({"arguments": {"report_to": "trackio"}}, RuntimeError, "requires trackio"),
    "no rewards": ({"rewards": []}, ValueError, "No reward source"),
    "too few weights": ({"arguments": {"reward_weights": [1.0]}}, ValueError, "reward weights"),
    "a reward without kwargs": ({"rewards": [no_kwargs]}, TypeError, "unexpected keyword argument"),
    "a column that is not there": ({"rewards": [wants_solution]}, TypeError, "'solutions'"),
    "no prompt column": ({"train": [{"question": "What?", "answer": "1"}] * 8}, KeyError, "prompt"),
    "no chat template": ({"tokenizer": {"chat_template": None}}, ValueError, "chat_template is not set"),
    "no end of sequence": (
        {"tokenizer": {"eos_token": None}},
        *((TypeError, "NoneType") if trl_is_at_least("1.15.0") else (AttributeError, "size")),
    ),
    "vLLM that is not there": ({"arguments": {"use_vllm": True}}, ImportError, "vLLM is not available"),
    "FlashAttention": (
        {"arguments": {"model_init_kwargs": {"attn_implementation": "flash_attention_2"}}}, ImportError, "Flash",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.upgrade
@pytest.mark.parametrize(("changes", "exception", "says"), FAILS.values(), ids=FAILS)
def test_trl_fails_on_what_preflight_refuses(changes, exception, says, tmp_path):
    tokenizer, changes = prepared(changes)
    with pytest.raises(exception, match=re.escape(says)):
        train_in_trl(tmp_path, tokenizer=tokenizer, **changes)


@pytest.mark.slow
@pytest.mark.upgrade
@pytest.mark.parametrize(
    "changes",
    [
        {"train": ROWS[:1]},
        {"arguments": {"num_iterations": 0}},
        {"arguments": {"max_steps": -1, "num_train_epochs": 0}},
    ],
    ids=["too few rows", "no iterations", "no epochs"],
)
def test_trl_ends_at_step_0_without_an_error(changes, tmp_path):
    assert train_in_trl(tmp_path, **changes).state.global_step == 0


@pytest.mark.slow
@pytest.mark.upgrade
@pytest.mark.parametrize("arguments", [{"reward_weights": [0.0] * 3}, {"top_k": 1}, {"top_p": 0.0}], ids=str)
def test_trl_has_nothing_to_learn_from(arguments, tmp_path):
    assert train_in_trl(tmp_path, arguments).state.log_history[0]["frac_reward_zero_std"] == 1.0


@pytest.mark.slow
@pytest.mark.upgrade
def test_trl_takes_max_steps_0_as_epochs_and_trains_in_fp16_on_a_cpu(tmp_path):
    assert train_in_trl(tmp_path, {"max_steps": 0, "num_train_epochs": 0.1}).state.global_step > 0
    assert train_in_trl(tmp_path, {"fp16": True}).state.global_step == 1
    assert train_in_trl(tmp_path, {"bf16": True}).state.global_step == 1
