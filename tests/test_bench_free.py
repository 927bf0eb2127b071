"""The experiment on what is free: it loses little when it is stopped, its answers are those of `generate`, and its page
shows what is missing."""

import doctest
import json
import re
import sys

import bench_checked
import bench_free
import pytest
from datasets import Dataset
from free import arms, cells, clock, first, measuring, rule, stages, table, training, whole_runs
from free.arms import ARMS, CELLS, ONE_SEED, ROWS_WITH_EXAMPLES, SEEDS
from free.cells import Arm, Cell, finished
from free.measuring import Answerer, in_parts, judged, parts_right
from free.prompts import INSTRUCTIONS, examples, instructed, with_examples

from grpo_utils.data.extraction import extraction_rows
from grpo_utils.data.prompts import chat_prompt
from grpo_utils.models import model_path

GOLD = '{"customer": "Mary", "item": "letters", "quantity": 9, "price": 17, "city": "Busan"}'


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """No cell has ended, and nothing was begun."""
    monkeypatch.setattr(cells, "STORED", tmp_path / "cells")
    monkeypatch.setattr(cells, "WORK", tmp_path / "work")
    monkeypatch.setattr(measuring, "WORK", tmp_path / "work")
    return tmp_path


def store(cell, greedy="0110" * 100, **others):
    """A finished cell."""
    times = dict(wall=120.0, processor=200.0, starts=1, others=0.0, alone=True)
    found = dict(arm=cell.arm, seed=cell.seed, greedy=greedy, sampled=[8, 0] * 50, imitated=3, checked=1560)
    found |= dict(
        prompt_tokens=87.4, making_time=times, measuring_time=times, format="float32", processor="a processor"
    )
    clock.write(cell.stored, found | dict(date="2026-11-28", versions=dict(trl="1.14.0")) | others)


# The cells


def test_every_arm_has_its_seeds_and_every_cell_a_file_of_its_own():
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    reported = [cell for cell in CELLS if not cell.choice]
    for arm in ARMS:
        seeds = [cell.seed for cell in reported if cell.arm == arm]
        assert seeds == [0] if arm in ONE_SEED else sorted(seeds) == list(SEEDS)


def test_a_choice_is_measured_on_development_rows_before_the_first_cell_that_needs_it():
    for arm, needed_by in ((arms.CAREFUL, arms.CAREFUL), (arms.sft_name(arms.RATE_AT), "SFT")):
        choices = [n for n, cell in enumerate(CELLS) if cell.arm == arm and cell.choice]
        users = [n for n, cell in enumerate(CELLS) if needed_by in cell.arm and not cell.choice]
        users += [n for n, cell in enumerate(CELLS) if cell.arm == "self-training"] if needed_by == "SFT" else []
        assert len(choices) >= 3 and max(choices) < min(users)
        assert {CELLS[n].split for n in choices} == {"dev"} and {CELLS[n].split for n in users} == {"test"}


def test_the_best_choice_has_the_most_right_answers_and_of_these_the_most_right_fields(empty):
    for rate, greedy in (("2e-4", "0010"), ("6e-4", "1110")):
        store(Cell(arms.sft_name(200), choice=rate), greedy, fields=0.5)
    with pytest.raises(ValueError, match="not measured on development rows yet: 2e-3"):
        arms.best_rate()
    for fields, best in ((0.5, "6e-4"), (0.6, "2e-3")):
        store(Cell(arms.sft_name(200), choice="2e-3"), "0111", fields=fields)
        assert arms.best_rate() == best


def test_a_cell_is_stored_when_it_ends_and_not_before(empty, monkeypatch):
    cell, measured = Cell("GRPO", 1), []

    def measure(answerer, folder, split, seed):
        measured.append((answerer.checked, split, seed))
        if len(measured) == 1:
            raise KeyboardInterrupt
        return dict(greedy="01")

    monkeypatch.setattr(cells, "measure", measure)
    arm = Arm("an arm", lambda cell: Answerer(checked=560, about=dict(rate="2e-4")), minutes=1)
    with pytest.raises(KeyboardInterrupt):
        cells.run(cell, arm)
    assert finished(cell) is None
    cells.run(cell, arm)
    found = finished(cell)
    assert measured == [(560, "test", 1)] * 2 and found["greedy"] == "01" and found["checked"] == 560
    assert found["rate"] == "2e-4" and found["measuring_time"]["starts"] == 2 and found["versions"]["trl"]


def test_the_command_runs_what_is_missing_and_lists_what_is_left(empty, monkeypatch, capsys):
    ran, some = [], [Cell("0 examples"), Cell("3 examples"), Cell("3 examples", 1)]
    monkeypatch.setattr(bench_free, "CELLS", some)
    monkeypatch.setattr(bench_free, "prepare_machine", lambda *_, **__: None)
    for module in (bench_free, first):
        monkeypatch.setattr(module, "put", lambda title, text, page: None)
    monkeypatch.setattr(bench_free, "run", lambda cell, arm: ran.append(cell))
    store(some[1])
    for options in ([], ["--only", "3 examples"], ["--write"]):
        monkeypatch.setattr(sys, "argv", ["bench_free.py", *options])
        bench_free.main()
    assert ran == [some[0], some[2], some[2]]
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["bench_free.py", "--list"])
    bench_free.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines[:3]] == ["left", "done", "left"] and "greedy 0.500" in lines[1]
    assert lines[3].startswith(f"{ARMS['0 examples'].minutes + ARMS['3 examples'].minutes} minutes left")


# Stopped in the middle


def test_a_batch_that_was_answered_is_not_answered_again(tmp_path):
    asked = []

    def answers(part):
        asked.append(part.start)
        if asked == [0, 2]:
            raise KeyboardInterrupt
        return [[f"answer {n}"] for n in part]

    with pytest.raises(KeyboardInterrupt):
        in_parts(5, 2, tmp_path, answers)
    assert in_parts(5, 2, tmp_path, answers) == [[f"answer {n}"] for n in range(5)]
    assert asked == [0, 2, 2, 4]


def test_the_times_of_all_starts_are_added_also_after_an_error(tmp_path, monkeypatch):
    path = tmp_path / "times.json"
    seconds = iter(range(0, 1000, 10))
    monkeypatch.setattr(clock, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(clock, "busy_seconds", lambda: 0.0)
    monkeypatch.setattr(clock, "own_seconds", lambda: 0.0)
    with pytest.raises(KeyboardInterrupt), clock.timed(path):
        raise KeyboardInterrupt
    with clock.timed(path):
        pass
    found = clock.summary(path)
    assert (found["wall"], found["starts"], found["alone"]) == (20.0, 2, True)


def test_all_cells_have_the_number_format_of_the_first(empty, monkeypatch):
    """Which format is faster is measured, so a busy machine could change it between two cells, or within one."""
    for faster in ("float32", "bfloat16"):
        monkeypatch.setattr(measuring.smollm2, "dtype_on", lambda machine, faster=faster: faster)
        assert measuring.number_format() == "float32"


def test_a_cell_next_to_other_work_did_not_run_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(clock.os, "cpu_count", lambda: 2)
    for busy, alone in ((105.0, True), (150.0, False)):
        clock.write(tmp_path / "times.json", dict(wall=100.0, own=100.0, busy=busy, starts=1))
        assert clock.summary(tmp_path / "times.json")["alone"] is alone


@pytest.mark.slow
def test_sft_goes_on_from_its_checkpoint(empty, tmp_path, monkeypatch):
    steps = []

    def stop_at_eight(seconds):
        steps.append(seconds)
        if len(steps) == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "set_threads", stop_at_eight)
    monkeypatch.setattr(training.smollm2, "fetch", lambda: training.Path(model_path("tiny-qwen3")))
    rows = [dict(prompt=chat_prompt(f"What is {n} + 1?"), answer=str(n + 1)) for n in range(16)]
    with pytest.raises(KeyboardInterrupt):
        training.sft(rows, 1e-3, 5, 0, tmp_path)
    adapter = training.sft(rows, 1e-3, 5, 0, tmp_path)
    assert len(steps) == 8 + 5 and (adapter / "adapter_model.safetensors").exists()  # the checkpoint is of step 5
    training.sft(rows, 1e-3, 5, 0, tmp_path)
    assert len(steps) == 8 + 5


@pytest.mark.slow
def test_grpo_trains_once_with_a_control_and_with_other_rows(empty, tmp_path, monkeypatch):
    monkeypatch.setattr(training.smollm2, "fetch", lambda: training.Path(model_path("tiny-qwen3")))
    small = dict(use_unsloth="false", max_prompt_tokens=1000, max_completion_length=96, train_rows=16)
    small |= dict(gradient_accumulation_steps=1)
    words = [word for name, value in small.items() for word in (f"--{name}", str(value))]
    adapter, curves = training.grpo(
        0, tmp_path, *words, rewards=arms.CONTROLS / "format_alone.py", data=ROWS_WITH_EXAMPLES, steps=2
    )
    assert (adapter / "adapter_model.safetensors").exists() and len(curves["seconds"]) == 2 and not curves["correct"]
    assert "examples" in (tmp_path / "project" / "data.py").read_text(encoding="utf-8")
    monkeypatch.setattr(training.subprocess, "run", lambda *_, **__: pytest.fail("it was trained again"))
    assert training.grpo(0, tmp_path, *words, steps=2)[1] == curves


# The answers


@pytest.fixture(scope="module")
def tiny():
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = model_path("tiny-qwen3")
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval(), AutoTokenizer.from_pretrained(path)


PROMPTS = [chat_prompt(f"What is {a} + {b}?") for a, b in ((12, 3), (5, 777), (100, 40), (3, 9))]


@pytest.mark.slow
@pytest.mark.parametrize("prompts", [PROMPTS, PROMPTS[:1]], ids=["several", "one"])
def test_greedy_answers_are_those_of_generate(tiny, prompts):
    from free.answering import answer, encode
    from grpo_core.training.generating import generate

    model, tokenizer = tiny
    assert len(encode(tokenizer, prompts)[0]) > 10  # they begin with the same words
    found = answer(model, tokenizer, prompts, max_new_tokens=40)
    assert [text for (text,) in found] == generate(*tiny, prompts, temperature=0.0, max_new_tokens=40)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.slow
def test_greedy_answers_of_prompts_that_share_nothing_are_those_of_generate(tiny, monkeypatch):
    from free import answering
    from grpo_core.training.generating import generate

    monkeypatch.setattr(answering, "shared", lambda ids: 0)
    found = answering.answer(*tiny, PROMPTS, max_new_tokens=40)
    assert [text for (text,) in found] == generate(*tiny, PROMPTS, temperature=0.0, max_new_tokens=40)


@pytest.mark.slow
def test_greedy_answers_of_smollm2_with_examples_are_those_of_generate(real_model):
    import torch
    from free.answering import answer
    from grpo_core.training.generating import generate
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(real_model, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(real_model)
    framed = with_examples(examples(3, 0))
    prompts = [framed(row["prompt"]) for row in extraction_rows("orders", 4, "test")]
    found = answer(model, tokenizer, prompts, max_new_tokens=20)
    assert [text for (text,) in found] == generate(model, tokenizer, prompts, temperature=0.0, max_new_tokens=20)


@pytest.mark.slow
def test_samples_follow_the_probabilities_of_the_model(tiny):
    """The first token of many samples of one prompt, compared with a plain forward pass."""
    import torch
    from free.answering import answer
    from grpo_core.training.generating import encode_prompts

    model, tokenizer = tiny
    with torch.inference_mode():
        logits = model(**encode_prompts(tokenizer, PROMPTS[:1])).logits[0, -1].float()
    wanted = logits.softmax(dim=-1)
    (texts,) = answer(model, tokenizer, PROMPTS[:1], samples=2000, temperature=1.0, max_new_tokens=1)
    for token in wanted.topk(3).indices.tolist():
        share = texts.count(tokenizer.decode([token], skip_special_tokens=True)) / len(texts)
        assert share == pytest.approx(wanted[token].item(), abs=0.05)
    assert texts == answer(model, tokenizer, PROMPTS[:1], samples=2000, temperature=1.0, max_new_tokens=1)[0]


@pytest.mark.slow
def test_the_schema_allows_the_gold_answer_and_nothing_before_it(tiny):
    pytest.importorskip("llguidance", reason="in experiments/requirements.txt only")
    from free.answering import schema_mask

    tokenizer = tiny[1]
    ids = [*tokenizer(GOLD, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    mask = schema_mask(tokenizer, measuring.SCHEMA, len(tokenizer))([ids[:n] for n in range(len(ids))])
    assert all(mask[n][token] for n, token in enumerate(ids))
    assert not mask[0][tokenizer("She", add_special_tokens=False)["input_ids"][0]]
    assert mask[-1].sum() == 1  # after the object, only its end


def test_right_answers_their_form_and_their_fields_are_counted():
    rows = [dict(answer=GOLD)] * 3
    found = judged(rows, [[GOLD], [GOLD.replace("9", "8")], [f"{GOLD} and"]], [[GOLD, "no"]])
    assert (found["greedy"], found["sampled"]) == ("100", [1])
    assert found["form"] == pytest.approx(2 / 3, abs=1e-3) and found["fields"] == pytest.approx(0.6)
    assert parts_right("[1]", GOLD) == (False, 0.0) and parts_right('{"quantity": "9"}', GOLD) == (False, 0.0)


# The prompts


def test_examples_are_training_rows_and_each_seed_draws_others():
    (row,) = extraction_rows("orders", 1, "test")
    asked = with_examples(examples(3, 0))(row["prompt"])
    assert [turn["role"] for turn in asked] == ["system", *["user", "assistant"] * 3, "user"]
    assert asked[0] == row["prompt"][0] and asked[-1] == row["prompt"][-1]
    assert asked[2]["content"] == extraction_rows("orders", 1, "train", 0)[0]["answer"]
    assert examples(8, 0)[:6] == examples(3, 0) != examples(3, 1) and examples(0, 0) == []


def test_another_instruction_keeps_the_order():
    (row,) = extraction_rows("orders", 1, "test")
    order = row["prompt"][-1]["content"].partition("\n\n")[2]
    for name, text in INSTRUCTIONS.items():
        assert instructed(text)(row["prompt"])[-1]["content"] == f"{text}\n\n{order}"
        assert (instructed(text)(row["prompt"]) == row["prompt"]) == (name == "as in training")


@pytest.mark.slow
def test_rows_with_examples_have_none_of_the_examples(monkeypatch):
    import runpy

    load_rows = runpy.run_path(str(ROWS_WITH_EXAMPLES))["load_rows"]
    rows = load_rows("orders", "train", 20, 1)
    shown = {turn["content"] for turn in examples(3, 1)}
    assert len(rows) == 20 and not shown & {row["prompt"][-1]["content"] for row in rows}
    assert rows[0]["prompt"][1:-1] == examples(3, 1)


# The page


def test_a_page_without_cells_says_what_is_missing(empty):
    text = table.section()
    assert "; ".join(arm.what for arm in ARMS.values()) in text
    assert re.search(rf"\b{len(CELLS)} cells, {len(CELLS)}\b", text)
    assert table.NOT_YET in first.section([])


def test_the_page_has_the_mean_of_the_seeds_and_paired_tests(empty):
    for seed, greedy in ((0, "0110" * 100), (1, "1110" * 100)):
        store(Cell("8 examples", seed), greedy)
        store(Cell("SFT on 50 answers", seed), "1" * 400, format="bfloat16")
    text = table.section()
    (row,) = re.findall(r"^\| untrained, 8 examples in the prompt \| (.*) \|$", text, re.MULTILINE)
    mean, _, rest = row.partition(" (0.000 to 1.000) | ")  # two seeds that differ by 0.25 say next to nothing
    assert (mean, rest) == ("0.625", "0.500†, 0.750† | 0.750 | 0.500 | 0.500 | 0.500 | 3 | 1,560 | 87 | 3†")
    assert re.search(r"^\| SFT on 50 gold .* \| 1.000 \(.*\| 3 \|$", text, re.MULTILINE)


def test_grpo_has_the_runs_of_make_real_for_the_seeds_without_a_cell(empty):
    assert [each["seed"] for each in whole_runs.runs("GRPO")] == [0, 1, 2]
    store(Cell("GRPO", 1), "1" * 400)
    store(Cell("8 examples", 1), "0" * 400)
    assert table.tests() == "| GRPO | 8 examples | +1.000 (+0.981 to +1.000) | 1 higher, 0 lower, of 1 |"
    assert re.fullmatch(r"- GRPO, compared with 8 examples: seed 1: \+1\.000 .*: higher", table.seeds())


def test_a_comparison_of_several_seeds_has_their_mean(empty):
    for seed in SEEDS:
        store(Cell("8 examples", seed), "0" * 400)
        store(Cell("3 examples", seed), "1000" * 100)
    assert re.search(r"^\| 8 examples \| 3 examples \| -0\.250 .* \| 0 higher, 3 lower, of 3 \|$", table.tests(), re.M)
    assert re.search(r"^- 8 examples, .*seed 0: -0\.250.*; seed 1: -0\.250.*; seed 2: ", table.seeds(), re.M)


def test_the_rule_without_a_model_reads_all_sentences_that_it_was_written_for():
    assert all(rule.right(100, "train")) and all(rule.right(100, "dev"))
    known, new = (rule.right(100)[start::2] for start in (0, 1))
    assert all(known) and not all(new)
    assert rule.answer("Hello.") == ""


def test_the_committed_page_is_written_from_the_committed_cells():
    """Before the first cell there is no section, because a page of empty rows tells nobody anything."""
    page = (bench_free.PAGE).read_text(encoding="utf-8")
    wanted = 1 if any(cells.STORED.glob("*.json")) else 0
    assert page.count(f"## {bench_free.TITLE}\n") == wanted
    assert page.count(f"## {bench_free.TITLE}\n{table.section()}") == wanted
    rows = bench_checked.read_stored(bench_checked.STORED)["rows"]
    assert f"## {first.TITLE}\n{first.section(rows)}" in page
    assert f"## {stages.TITLE}\n{stages.section()}" in page


def test_stages_are_compared_with_the_run_of_make_real_that_has_their_seed(empty):
    assert (stages.by_step(), stages.numbers()) == ("", {})
    correct = [0.0] * 30 + [0.5] * 5  # of the second stage
    store(Cell("form first, then GRPO", 1), "1" * 400, curves=dict(correct=correct))
    [(one, two)] = stages.pairs()
    assert one["seed"] == two["seed"] == 1
    assert stages.by_step().endswith("| two stages, seed 1 | 0.00 | 0.00 | 0.50 |")
    assert re.match(r"- seed 1: one stage 0\.\d+, two stages 1\.000; difference \+.*: higher$", stages.by_seed())


def test_the_samples_of_two_stages_are_read_for_numbers_and_texts(empty, tmp_path):
    folder = tmp_path / "run" / "completions"
    folder.mkdir(parents=True)
    texts = [GOLD, GOLD.replace("9", '"9"'), "9 letters", "[9]"]
    for step, said in enumerate((texts, texts[:1] * 4), start=1):
        columns = dict(step=[step] * 4, prompt=["order"] * 4, completion=said, keys_reward=[1.0, 1.0, 0.0, 0.0])
        Dataset.from_dict(columns | dict(advantage=[0.0] * 4)).to_parquet(folder / f"completions_{step:05}.parquet")
    kinds = training.quantities(folder.parent)
    assert kinds == dict(number=[1, 4], text=[1, 0])
    store(Cell("form first, then GRPO", 1), quantities={name: seen * 35 for name, seen in kinds.items()})
    assert stages.numbers()["seed 1"][-2:] == [pytest.approx(11 / 14), pytest.approx(14 / 16)]


@pytest.mark.parametrize("module", [cells, measuring, rule, stages, table, training, whole_runs])
def test_the_examples_in_docstrings_hold(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_stored_cells_have_what_the_page_needs():
    for path in cells.STORED.glob("*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        cell = Cell(found["arm"], found["seed"], found["choice"])
        assert cell in CELLS and cell.stored == path and len(found["greedy"]) == (100 if cell.choice else 400)
