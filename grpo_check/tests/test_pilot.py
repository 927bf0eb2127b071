"""The pilot: figures and verdicts from written groups, real samples of the tiny model, and bad input."""

import argparse
import random
import re
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from grpo_check.pilots import running
from grpo_check.pilots.figures import Figures, Mean, Rewards, Share, Tokens, figures, planned_steps
from grpo_check.pilots.running import pilot_file, report_on, warnings_of
from grpo_check.pilots.sampling import Group
from grpo_check.pilots.verdicts import RULES, Basis, decide
from grpo_check.preflights.planned import plan
from grpo_check.probes import calling
from places import ROOT
from preflight_runs import write_addition

from grpo_check import CourseError, PilotReport, __main__, pilot
from grpo_utils import correctness_reward, load_rows, model_path
from grpo_utils.rewards import group_advantages

CONFIG = dict(
    output_dir="unused", num_generations=4, per_device_train_batch_size=32, max_completion_length=32, max_steps=10,
    use_cpu=True, bf16=False,
)  # fmt: skip


def share(value: float) -> Share:
    return Share((value,) * 10)


GOOD = Figures(
    size=4,
    sampled=8,
    tied=share(0.3),
    tied_larger=share(0.1),
    truncated=share(0.0),
    right=share(0.3),
    formed=share(0.4),
    pull=Mean(0.9, 0.5, 1.2),
    ending=None,
    reward=Rewards(0.3, 0.0, 1.0, 0.4),
    tokens=Tokens(20.0, 28, 30),
    seconds=(1.0, 0.1, 1.0),
)


TIED = {"tied": share(0.95), "tied_larger": share(0.95), "reward": Rewards(0.1, 0.0, 1.0, 0.1)}
ALL_TIED = {"tied": share(1.0), "tied_larger": share(1.0), "reward": Rewards(0.2, 0.0, 1.0, 0.0)}


@pytest.mark.parametrize(
    ("changes", "longer", "code", "said"),
    [
        ({}, [], "go", "70% of the groups"),
        ({"right": None, "pull": None}, [], "go", "70% of the groups"),
        ({"truncated": share(0.9)}, [(60, True)] * 9 + [(128, False)], "raise_limit", "to 60 or more"),
        ({"truncated": share(0.9)}, [], "raise_limit", "to 60 or more"),
        ({"truncated": share(1.0)}, [(128, False)] * 10, "fix_eos", "10 of 10 at 4 times"),
        ({"tied": share(0.95), "tied_larger": share(0.5)}, [], "larger_groups", "num_generations to 8"),
        (TIED, [], "easier_rows", "95% "),
        (
            {"tied": share(0.95), "tied_larger": share(0.95), "reward": Rewards(0.98, 0.0, 1.0, 0.01)},
            [],
            "harder_rows",
            "is 0.98 of 1",
        ),
        ({"right": share(0.99)}, [], "harder_rows", "99% "),
        (
            {"tied": share(1.0), "tied_larger": share(1.0), "right": None, "reward": Rewards(0.0, 0.0, 0.0, 0.0)},
            [],
            "sft_first",
            "every reward is 0",
        ),
        (
            ALL_TIED | {"right": share(0.22), "pull": Mean(0.0, 0.0, 0.0)},
            [],
            "fix_reward",
            "every group ties although 22% (0% to 44%) are correct",
        ),
        (ALL_TIED | {"right": share(0.22), "pull": None}, [], "easier_rows", "always or never is"),
        (ALL_TIED | {"right": None, "pull": None}, [], "sft_first", "the same prompt always score the same"),
        ({"right": share(0.0), "formed": share(0.1), "pull": None}, [], "partial_credit", "but 70% of the groups"),
        (ALL_TIED | {"right": share(0.0), "formed": share(0.1), "pull": None}, [], "sft_first", "0% "),
        ({"truncated": share(0.9), "ending": Mean(0.9, 0.5, 1.2)}, [(60, True)] * 9, "go", "70% of the groups"),
        ({"truncated": share(0.9), "ending": Mean(0.9, -0.1, 1.2)}, [(60, True)] * 9, "raise_limit", "+0.90 (-0.10 to"),
        ({"right": share(0.01), "formed": share(0.28)}, [], "check_golds", "28% "),
        (TIED | {"right": share(0.0), "formed": share(0.28), "pull": None}, [], "check_golds", "28% "),
        ({"pull": Mean(-0.9, -1.2, -0.5)}, [], "fix_reward", "-0.90 (-1.20 to -0.50)"),
        (
            {"tied": share(1.0), "tied_larger": share(1.0), "reward": Rewards(1.0, 1.0, 1.0, 0.0)},
            [],
            "fix_reward",
            "every completion scores 1",
        ),
    ],
)
def test_each_verdict_names_the_number_that_decided_it(changes, longer, code, said):
    verdict = decide(Basis(replace(GOOD, **changes), longer))
    assert verdict.code == code and said in str(verdict)
    assert verdict.severity == {"go": "note", "partial_credit": "warning"}.get(code, "error") and verdict.fixes
    assert all(rule(Basis(replace(GOOD, **changes), longer)) == [verdict] for rule in RULES if rule.code == code)


@pytest.mark.parametrize(
    ("changes", "temperature", "code"),
    [
        (TIED, 0.05, "raise_temperature"),
        ({"right": share(0.0), "pull": None}, 0.29, "raise_temperature"),
        (TIED, 0.3, "easier_rows"),
        ({}, 0.05, "go"),
        ({"truncated": share(0.9)}, 0.05, "raise_limit"),
        (TIED | {"right": share(0.9)}, 0.05, "harder_rows"),
    ],
)
def test_a_low_temperature_is_the_cause_of_ties(changes, temperature, code):
    verdict = decide(Basis(replace(GOOD, **changes), temperature=temperature))
    assert verdict.code == code and (code != "raise_temperature" or f"temperature={temperature:g}" in verdict.what)


def test_every_code_is_explained_on_the_page():
    page = (ROOT / "grpo_check" / "docs" / "checks.md").read_text(encoding="utf-8")
    assert not [rule.code for rule in RULES if f"| `{rule.code}` | {rule.meaning} |" not in page]


def written(scores: list[list[float | None]], right: list[bool] | None = None) -> Group:
    count = len(scores[0])
    return Group(scores, [5] * count, [True] * count, (0.1, 0.01), right=right, formed=right)


def test_completions_that_end_have_the_advantage_that_the_reward_gives_them():
    scores, ends = [1.0, 1.0, 0.0, 0.0], [True, True, False, False]
    ending = [replace(written([row] * 2), ended=ends) for row in (scores, scores[::-1])]
    assert figures(run_of(), ending[:1], None).ending.value == pytest.approx(0.866, abs=0.001)
    assert figures(run_of(), ending[1:], None).ending.value == pytest.approx(-0.866, abs=0.001)
    assert figures(run_of(), [written([scores] * 2)], None).ending is None


@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_advantage_is_that_of_groups_of_the_planned_size(size):
    only = written([[1.0] + [0.0] * 7] * 2, [True] + [False] * 7)
    largest = group_advantages([2.0] + [0.0] * (size - 1), size)[0]
    assert figures(run_of(num_generations=size), [only], None).pull.value == pytest.approx(largest)


def run_of(**changes: object) -> object:
    return plan(CONFIG | changes, train=[{"prompt": "a"}] * 100, rewards=[correctness_reward] * 2)


def test_ties_and_advantages_are_those_of_the_weighted_sum():
    run = run_of(reward_weights=[2.0, 1.0])
    tied = written([[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 2.0]], [True, False, False, False])
    mixed = written([[1.0, 0.0, 0.0, None], [0.0, 0.0, 1.0, None]], [True, False, False, False])
    seen = figures(run, [tied, mixed], 0.01)
    assert seen.tied.of_prompts == (1.0, 0.0)
    best = group_advantages([2.0, 0.0, 1.0], 3)[0]
    assert seen.pull.value == pytest.approx((0.0 + best) / 2)
    assert figures(run_of(multi_objective_aggregation="normalize_then_sum"), [tied], 0).tied.value == 0.0


def test_a_group_without_any_score_is_tied():
    assert figures(run_of(), [written([[None] * 4, [None] * 4])], 0.0).tied.value == 1.0


def test_ties_of_small_groups_come_from_the_larger_sample():
    seen = figures(run_of(num_generations=2), [written([[0.0] * 7 + [1.0], [0.0] * 8])], 0.0)
    assert seen.tied.value == pytest.approx(21 / 28) and seen.tied_larger.value == 0.0


def test_seconds_and_steps_follow_the_batch():
    run = run_of(gradient_accumulation_steps=2, gradient_checkpointing=False)
    seen = figures(run, [written([[0.0, 1.0], [0.0, 1.0]])], 0.01)
    assert seen.seconds == pytest.approx((6.4, 0.64, 0.01 * 3 * 64))
    assert figures(run, [written([[0.0], [0.0]])], None).seconds[2] is None
    assert planned_steps(run) == 10
    epochs = run_of(max_steps=-1, num_train_epochs=2)
    assert planned_steps(epochs) == 25  # 100 rows, 8 prompts per step, 2 epochs


# Real samples of the tiny model

PLAIN = [{"prompt": f"<|im_start|>What is {n} + 1?", "answer": str(n + 1)} for n in range(64)]


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return list(load_rows("addition", "train", 64))


def run_pilot(tiny: tuple, rows: list, *rewards: object, prompts: int = 8, **changes: object) -> PilotReport:
    return pilot(*tiny, list(rewards) or [correctness_reward], rows, config=CONFIG | changes, prompts=prompts)


def test_a_sound_run_is_a_go(tiny, rows, monkeypatch):
    import torch

    state = torch.get_rng_state()
    monkeypatch.setattr(tiny[0], "training", True)
    report = pilot(*tiny, [correctness_reward], rows, config=CONFIG, prompts=12, price=3.6)
    assert report.ok and report.verdict.code == "go"
    assert torch.equal(torch.get_rng_state(), state) and tiny[0].training  # a training run after it is not changed
    assert report.price == pytest.approx(report.minutes * 3.6 / 60) and report.steps == 10
    lines = str(report).splitlines()
    assert lines[0].split() == ["sampled", "12", "prompts", "x", "8", "completions"]
    assert lines[-2].startswith("verdict             go: ")
    assert "price" in str(report) and "measured forward pass x assumed factor" in str(report)
    pairs = [pair for one in report.groups for pair in zip(one.right, one.scores[0], strict=True)]
    assert 0 < sum(right for right, _ in pairs) < len(pairs) and all(score == 1.0 for right, score in pairs if right)


def test_examples_are_other_rows_and_come_after_the_system_message(tiny, rows):
    usual = pilot(*tiny, [correctness_reward], rows, config=CONFIG, prompts=8)
    shown = pilot(*tiny, [correctness_reward], rows, config=CONFIG, prompts=8, examples=3)
    assert "3 rows in each prompt" in str(shown) and "in each prompt" not in str(usual)
    asked = {group.row["prompt"][-1]["content"] for group in shown.groups}
    for group in shown.groups:
        first, *turns, last = group.row["prompt"]
        assert first["role"] == "system" and [turn["role"] for turn in turns] == ["user", "assistant"] * 3
        assert last in [row["prompt"][-1] for row in rows] and not asked & {turn["content"] for turn in turns}
        assert all(turn["content"].endswith("</answer>") for turn in turns[1::2])  # as the prompts ask


def test_examples_that_cannot_be_written_are_one_sentence(tiny, rows):
    for count, some, said in [(64, rows, "leaves none"), (-1, rows, "0 or more"), (2, PLAIN, "need chat prompts")]:
        with pytest.raises(CourseError, match=said):
            pilot(*tiny, [correctness_reward], some, config=CONFIG, prompts=8, examples=count)


def test_the_sampling_is_that_of_trl(tiny, rows):
    """Same seed, same batch: the tokens of TRL's own trainer."""
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    seen = []

    def keep(completion_ids: list, **kwargs: object) -> list[float]:
        seen.append(completion_ids)
        return [0.0] * len(completion_ids)

    config = CONFIG | dict(num_generations=8, report_to="none", max_steps=1)
    model, tokenizer = deepcopy(tiny)
    trainer = GRPOTrainer(model, [keep], GRPOConfig(**config), Dataset.from_list(rows), processing_class=tokenizer)
    some = random.Random(0).sample(rows, 4)
    torch.manual_seed(0)
    trainer._generate_and_score_completions([row for row in some for _ in range(8)])
    pilot(*tiny, [keep], rows, config=config, prompts=4)
    assert seen[0] == seen[1]


def test_a_low_limit_is_raised_to_what_completions_need(tiny, rows):
    import torch

    state = torch.get_rng_state()
    verdict = run_pilot(tiny, rows, max_completion_length=6).verdict
    assert torch.equal(torch.get_rng_state(), state)
    assert verdict.code == "raise_limit"
    assert 12 <= int(re.search(r"to (\d+) or more", verdict.fixes[0])[1]) <= 24


def with_prompts(rows: list, written) -> list[dict]:
    return [row | {"prompt": written(row)} for row in rows]


def test_a_dropped_chat_template_is_the_cause(tiny, rows, tmp_path):
    """A model in a folder may be a base model, so plain text is only a warning of the preflight."""
    tiny[0].config.save_pretrained(tmp_path / "my-model")
    plain = with_prompts(rows, lambda row: "\n".join(turn["content"] for turn in row["prompt"]))
    given = dict(model=tmp_path / "my-model", tokenizer=tiny[1], train=plain, rewards=[correctness_reward])
    run = plan(CONFIG, **given)
    report = report_on(run, warnings_of(run), tiny[0], prompts=8, examples=0, correct=None, price=None, seed=0)
    assert report.verdict.code == "fix_prompts" and "list of messages" in report.verdict.fixes[0]
    lines = str(report).splitlines()
    [warned] = [n for n, line in enumerate(lines) if line.startswith("warning string_prompt")]
    [said] = [n for n, line in enumerate(lines) if line.startswith("verdict ")]
    assert warned < said


def test_plain_prompts_are_right_for_a_base_model_with_a_template(tiny, rows, tmp_path):
    from transformers import AutoModelForCausalLM

    tiny[0].save_pretrained(tmp_path / "my-model-base")
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "my-model-base")
    plain = with_prompts(rows, lambda row: row["prompt"][-1]["content"])
    report = pilot(base, tiny[1], [correctness_reward], plain, config=CONFIG, prompts=1)
    assert "string_prompt" not in report.codes


def test_a_temperature_near_zero_is_the_cause(tiny, rows):
    assert run_pilot(tiny, rows, temperature=0.05).verdict.code == "raise_temperature"


@pytest.mark.parametrize("kind", ["correctness alone", "math rewards"])
def test_shuffled_gold_answers_are_suspected_and_shown(kind, tiny, rows):
    from grpo_utils import math_rewards

    golds = [row["answer"] for row in rows]
    shuffled = [row | {"answer": gold} for row, gold in zip(rows, golds[7:] + golds[:7], strict=True)]
    rewards, weights = math_rewards() if kind == "math rewards" else ([correctness_reward], [1.0])
    report = run_pilot(tiny, shuffled, *rewards, prompts=16, reward_weights=weights)
    assert report.verdict.code == "check_golds" and str(report).count("with the gold answer") == 3


def test_gold_answers_in_the_prompts_are_a_warning_before_the_verdict(tiny, rows):
    def told(row: dict) -> list[dict]:
        *first, last = row["prompt"]
        return [*first, last | {"content": f"{last['content']} (gold: {row['answer']})"}]

    report = run_pilot(tiny, with_prompts(rows, told))
    assert "gold_in_prompt" in report.codes and report.verdict is report.findings[0]
    assert str(report).index("warning gold_in_prompt") < str(report).index("\nverdict ")


def fails(completions: list, **kwargs: object) -> list[float]:
    raise KeyError("gold")


def none(completions: list, **kwargs: object) -> None:
    return None


def all_none(completions: list, **kwargs: object) -> list[None]:
    return [None] * len(completions)


def words(completions: list, **kwargs: object) -> list[str]:
    return ["good"] * len(completions)


def short(completions: list, **kwargs: object) -> list[float]:
    return [1.0]


def hangs(completions: list, **kwargs: object) -> list[float]:
    while True:
        pass


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (fails, "fails failed on 32 real completions: KeyError: 'gold'"),
        (none, "returned NoneType, not a list"),
        (all_none, "returned None for every completion"),
        (words, "returned nan or something that is not a number"),
        (short, "returned 1 scores for 32 completions"),
        (hangs, "not finished after 0.2 seconds"),
    ],
)
def test_a_reward_that_fails_is_the_verdict(reward, said, tiny, rows, monkeypatch):
    monkeypatch.setattr(calling, "LONGEST_CALL", 0.2)
    report = run_pilot(tiny, rows, reward)
    assert not report.ok and report.verdict.code == "fix_reward" and said in str(report)


@pytest.mark.parametrize(("calls", "code"), [(1, "stopped"), (2, "stopped"), (4, "go")])
def test_ctrl_c_keeps_what_was_sampled(calls, code, tiny, rows):
    seen = []

    def interrupted(completions: list, answer: list, **kwargs: object) -> list[float]:
        seen.append(completions)
        if len(seen) == calls:
            raise KeyboardInterrupt
        return correctness_reward(completions, answer)

    report = pilot(*tiny, [interrupted], rows, config=CONFIG, prompts=32, price=2.5)
    assert report.verdict.code == code and len(report.groups) == 4 * (calls - 1)
    assert f"interrupted         after {4 * (calls - 1)} of 32 prompts" in str(report)
    said = {
        1: "no group was sampled",
        2: "only 4 groups were sampled",
        4: "learning not measured",
    }
    assert said[calls] in str(report) and report.minutes is report.price is None


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), KeyboardInterrupt()])
def test_a_correct_that_fails_costs_no_samples(error, tiny, rows):
    def correct(text: str, row: dict) -> bool:
        raise error

    report = pilot(*tiny, [correctness_reward], rows, config=CONFIG, prompts=1, correct=correct)
    assert report.figures.right is None and "sampled             1 prompt x 8 completions" in str(report)
    why = f"failed: ZeroDivisionError: {error}" if str(error) else "was interrupted"
    assert f"which completions are correct is not known, because correct() {why}" in str(report)


def test_ctrl_c_outside_the_sampling_is_one_sentence(monkeypatch, grpo_check):
    def interrupted(arguments: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(__main__, "parse", lambda: argparse.Namespace(command=interrupted))
    assert grpo_check() == (2, "", "Interrupted; nothing was written.\n")


def test_a_prompt_that_opens_thinking_is_reported(tiny, rows):
    from grpo_utils.rewards import think_format_reward

    model, tokenizer = tiny[0], type(tiny[1]).from_pretrained(model_path("tiny-qwen3"))
    tokenizer.chat_template += "{% if add_generation_prompt %}<think>\n{% endif %}"
    report = pilot(model, tokenizer, [think_format_reward], rows, config=CONFIG, prompts=2)
    assert "the prompt ends with '<think>'" in str(report)


def test_a_tokenizer_without_padding_gets_the_eos_token_as_in_trl(tiny, rows):
    tokenizer = without("pad_token")
    assert pilot(tiny[0], tokenizer, [correctness_reward], rows, config=CONFIG, prompts=4).groups


def test_a_gpu_that_is_too_small_is_one_sentence(tiny, rows, monkeypatch):
    import torch

    def full(**inputs: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(tiny[0], "generate", full)
    with pytest.raises(CourseError, match="out of GPU memory while sampling 32 completions: lower per_device"):
        run_pilot(tiny, rows)


def without(name: str) -> object:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    setattr(tokenizer, name, None)
    return tokenizer


def test_what_cannot_start_is_an_error_before_the_model_is_used(tiny, rows):
    model = tiny[0]
    how = dict(config=CONFIG)
    with pytest.raises(CourseError, match="no rows to sample from"):
        pilot(model, tiny[1], [correctness_reward], [], **how)
    with pytest.raises(CourseError, match="no chat template"):
        pilot(model, without("chat_template"), [correctness_reward], rows, **how)
    with pytest.raises(CourseError, match="no eos_token"):
        pilot(model, without("eos_token"), [correctness_reward], rows, **how)
    with pytest.raises(CourseError, match="the run has no rewards"):
        pilot(*tiny, [], rows, **how)
    with pytest.raises(CourseError, match="calls functions only"):
        pilot(*tiny, ["owner/judge"], rows, **how)
    with pytest.raises(CourseError, match="needs the column 'answer'"):
        pilot(*tiny, [correctness_reward], [{"prompt": row["prompt"]} for row in rows], **how)
    with pytest.raises(CourseError, match="prompts=0"):
        pilot(*tiny, [correctness_reward], rows, prompts=0, **how)
    for price in (-1.0, float("nan")):
        with pytest.raises(CourseError, match=f"price={price} should be 0 or more"):
            pilot(*tiny, [correctness_reward], rows, price=price, **how)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"temperature": 0.0}, "temperature=0.0 samples greedily"),
        ({"temperature": None}, "temperature=None should be float"),
        ({"top_p": 2.0}, "top_p=2.0 is out of range"),
        ({"num_iterations": 0}, "num_iterations=0 is out of range"),
        ({"max_completion_length": 0}, "max_completion_length=0 is out of range"),
        ({"max_completion_length": -3}, "max_completion_length=-3 is out of range"),
        ({"max_completion_length": "32"}, "max_completion_length='32' is a string"),
        ({"num_generations": "four"}, "num_generations='four' should be int"),
        ({"num_generations": 5}, "not divisible by num_generations=5"),
        ({"max_steps": None}, "max_steps=None should be int"),
        ({"loss_type": "gpro"}, "loss_type='gpro' is not a valid choice"),
        ({"learnin_rate": 1e-3}, "'learnin_rate' is not an argument"),
    ],
    ids=str,
)
def test_arguments_that_cannot_start_are_errors_before_the_model_is_used(changes, said, tiny, rows):
    with pytest.raises(CourseError, match=re.escape(said)):
        pilot(SimpleNamespace(config=tiny[0].config), tiny[1], [correctness_reward], rows, config=CONFIG | changes)


# From a terminal

FILE = f"""
model_name_or_path: {model_path("tiny-qwen3")}
dataset_name: addition.jsonl
reward_funcs: ["mine.py:right"]
max_steps: 100
per_device_train_batch_size: 32
max_completion_length: 32
use_cpu: true
bf16: false
"""
REWARD = """
from grpo_utils import correctness_reward

def right(completions, answer, **kwargs):
    return correctness_reward(completions, answer)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text(FILE, encoding="utf-8")
    write_addition(tmp_path)
    (tmp_path / "mine.py").write_text(REWARD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_command_prints_the_verdict(project, grpo_check):
    given = [sys.executable, "-m", "grpo_check", "pilot", "config.yaml", "--prompts", "16"]
    run = subprocess.run([*given, "--price", "2.5", "--steps", "40"], capture_output=True, text=True)
    assert run.returncode == 0 and "verdict             go: " in run.stdout, run.stdout + run.stderr
    assert "40 steps" in run.stdout and "price 0." in run.stdout
    code, out, _ = grpo_check("pilot", "config.yaml", "--prompts", "4", "--limit", "5")
    assert code == 1 and "raise_limit" in out


def test_a_finding_that_is_ignored_does_not_stop_the_pilot(project, monkeypatch, grpo_check):
    go = decide(Basis(GOOD))
    monkeypatch.setattr(running, "_policy", lambda run, adapter: None)
    monkeypatch.setattr(running, "report_on", lambda run, warnings, model, **how: PilotReport((go, *warnings)))
    five = partial(grpo_check, "pilot", "config.yaml", "--group", "5")
    code, _, err = five()
    assert code == 2 and "not divisible by num_generations=5" in err
    code, out, _ = five("--ignore", "batch")
    assert code == 0 and "batch" not in out
    assert five("--select", "leak")[0] == 0


def test_epochs_are_counted_in_steps(project):
    (project / "config.yaml").write_text(FILE.replace("max_steps: 100", "num_train_epochs: 2"), encoding="utf-8")
    assert pilot_file(project / "config.yaml", prompts=1).steps == 2 * 64 * 8 / 32


@pytest.mark.parametrize("four_bits", ["false", "true"])
def test_the_dtype_may_be_auto(project, four_bits):
    """It is valid in TRL, and was an AttributeError: module 'torch' has no attribute 'auto'."""
    text = f"{FILE}dtype: auto\nuse_peft: true\nload_in_4bit: {four_bits}\n"
    (project / "config.yaml").write_text(text, encoding="utf-8")
    assert pilot_file(project / "config.yaml", prompts=1).figures


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.yaml"], "There is no file 'missing.yaml'"),
        (["config.yaml", "--train", "missing.jsonl"], "There is no file 'missing.jsonl'"),
        (["config.yaml", "--reward", "mine.py:wrong"], "There is no 'wrong' in mine.py"),
        (["config.yaml", "--model", "no/such-model"], "'no/such-model'"),
        (["config.yaml", "--adapter", "no-such-folder"], "'no-such-folder' cannot be loaded"),
        (["config.yaml", "--group", "1"], "num_generations=1 is out of range"),
        (["config.yaml", "--limit", "0"], "max_completion_length=0 is out of range"),
        (["config.yaml", "--price", "-1"], "price=-1.0 should be 0 or more"),
        (["config.yaml", "--prompts", "0"], "prompts=0 should be 1 or more"),
    ],
)
def test_the_command_says_what_is_missing(arguments, said, project, grpo_check):
    code, out, err = grpo_check("pilot", *arguments)
    assert code == 2 and not out and said in err and "Traceback" not in err
