"""How docs/evaluation.md chooses a checkpoint: its settings exist, and its last section is what was measured."""

import json
import re
from dataclasses import fields

import bench_checkpoint
import pytest

PAGE = bench_checkpoint.PAGE.read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## Choosing a checkpoint\n")[2]
STORED = json.loads(bench_checkpoint.STORED.read_text(encoding="utf-8"))
RUNS = STORED["runs"]
UNLIMITED, SATURATED = "A reward without a limit", "A reward that saturates"


def test_the_last_section_is_written_from_the_stored_measurement(tmp_path, monkeypatch):
    copy = tmp_path / "page.md"
    copy.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(bench_checkpoint, "PAGE", copy)
    bench_checkpoint.write(STORED)
    assert copy.read_text(encoding="utf-8") == PAGE


def test_every_setting_of_the_section_is_an_argument_of_grpo_config():
    from trl import GRPOConfig

    example = re.search(r"```python\nconfig = GRPOConfig\((.*?)^\)", SECTION, re.DOTALL | re.MULTILINE)[1]
    table = SECTION.split("| setting |")[1].split("\n\n")[0]
    rows = [row.split(" | ")[0] for row in table.splitlines()[2:]]
    names = {*re.findall(r"^ +(\w+)=", example, re.MULTILINE), *re.findall(r"`(\w+)`", " ".join(rows))}
    assert len(names) >= 9 and names <= {field.name for field in fields(GRPOConfig)}


@pytest.mark.parametrize("name", RUNS)
def test_the_earliest_of_equal_checkpoints_was_kept(name):
    evaluations = RUNS[name]["evaluations"]
    best = max(row["reward"] for row in evaluations)
    assert RUNS[name]["chosen"] == next(row["step"] for row in evaluations if row["reward"] == best)


def test_the_hacked_reward_kept_a_bad_checkpoint_and_the_saturated_one_an_early_one():
    tests = {name: {row["step"]: row["test"] for row in run["evaluations"]} for name, run in RUNS.items()}
    hacked, saturated = RUNS[UNLIMITED], RUNS[SATURATED]
    assert tests[UNLIMITED][hacked["chosen"]] < max(tests[UNLIMITED].values()) - 0.5
    ties = [row["step"] for row in saturated["evaluations"] if row["reward"] == 1.0]
    assert saturated["chosen"] == ties[0] and len(ties) > 1


def test_the_text_quotes_the_luck_of_the_best_checkpoint_and_what_each_failure_cost():
    hacked, saturated = (RUNS[name]["evaluations"] for name in (UNLIMITED, SATURATED))
    best = max(hacked, key=lambda row: row["truth"])
    kept = next(row["test"] for row in hacked if row["step"] == RUNS[UNLIMITED]["chosen"])
    ties = [row["test"] for row in saturated if row["reward"] == 1.0]
    quoted = re.findall(r"\b0\.\d{3}\b", SECTION.partition(bench_checkpoint.MARK)[0])
    assert set(quoted) == {f"{rate:.3f}" for rate in (best["truth"], best["test"], kept, *ties)}
    assert best["truth"] > best["test"]


def test_early_stopping_ended_the_run_two_evaluations_after_the_best_one():
    early = STORED["early"]
    assert early["stopped"] == early["chosen"] + 2 * bench_checkpoint.EVERY < bench_checkpoint.STEPS


def test_the_best_checkpoint_is_replaced_only_by_a_greater_value():
    from types import SimpleNamespace

    from transformers import Trainer
    from transformers.trainer_callback import TrainerState
    from transformers.trainer_utils import SaveStrategy

    arguments = SimpleNamespace(
        metric_for_best_model="eval_reward", greater_is_better=True, save_strategy=SaveStrategy.STEPS
    )
    trainer = SimpleNamespace(args=arguments, state=TrainerState())
    for step, reward in ((1, 0.5), (2, 1.0), (3, 1.0)):
        trainer.state.global_step = step
        Trainer._determine_best_metric(trainer, {"eval_reward": reward}, None)
    assert trainer.state.best_global_step == 2
