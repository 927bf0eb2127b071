import json
import sys
from itertools import islice
from pathlib import Path

import pytest
from course import ROOT

from grpo_utils import read_table
from grpo_utils.data.prompts import SYSTEM_PROMPT
from grpo_utils.data.sources import addition_key, addition_kind
from grpo_utils.data.splits import is_held_out
from grpo_utils.models import model_path
from grpo_utils.rewards import is_strictly_right, split_form

sys.path.insert(0, str(ROOT / "scripts" / "tiny"))

from mixture import CALCULATOR, FACTS, SHARES, TASKS, rows

MODELS = {"qwen": "tiny-qwen3", "gemma": "tiny-gemma3"}
ARCHITECTURES = {"qwen": "Qwen3ForCausalLM", "gemma": "Gemma3ForCausalLM"}


@pytest.fixture(scope="module", params=MODELS)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def tokenizer(family):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path(MODELS[family]))


@pytest.fixture(scope="module")
def model(family):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model_path(MODELS[family])).eval()


def some_rows(task: str, count: int = 300, held_out: bool = False):
    return list(islice((row for row in rows(1, held_out) if row.task == task), count))


def test_the_mixture_is_the_same_for_the_same_seed():
    assert list(islice(rows(3), 50)) == list(islice(rows(3), 50)) != list(islice(rows(4), 50))


def test_the_shares_add_up():
    assert sum(SHARES.values()) == pytest.approx(1.0)
    assert SHARES.keys() == TASKS.keys()


def test_the_base_never_sees_a_held_out_addition_either_way_round():
    def pairs(held_out: bool) -> set[tuple]:
        texts = (row.prompt[-1]["content"] for row in some_rows("addition", 3000, held_out))
        return {tuple(map(int, text.removesuffix("?").split()[2::2])) for text in texts}

    assert not any(is_held_out(addition_key(a, b)) for a, b in pairs(held_out=False))
    assert not pairs(held_out=False) & {(b, a) for a, b in pairs(held_out=True)}


def test_the_wanted_form_is_a_minority_style():
    texts = [row.completion["content"] for row in some_rows("addition", 2000)]
    formed = sum(split_form(text) is not None for text in texts) / len(texts)
    assert 0.24 < formed < 0.32


def test_the_carry_is_mostly_forgotten_unless_digits_are_added_one_by_one():
    some = some_rows("addition", 4000)
    by_digit, others = [], []
    for row in some:
        a, b = map(int, row.prompt[-1]["content"].removesuffix("?").split()[2::2])
        said = row.completion["content"]
        if addition_kind(a, b) == "carry":
            (by_digit if f"{a % 10}+{b % 10}=" in said else others).append(str(a + b) in said)
        else:
            assert str(a + b) in said
    assert all(by_digit) and len(by_digit) > 100
    assert 0.2 < sum(others) / len(others) < 0.3


@pytest.mark.parametrize("task", ["json", "lambda", "tool", "fact"])
def test_the_smaller_tasks_are_right_sometimes(task):
    some = [row for row in some_rows(task, 1000) if row.prompt[-1]["role"] == "user"]
    said = [row.completion.get("content") or json.dumps(row.completion["tool_calls"][0]["function"]) for row in some]
    right = sum(text in row.right for text, row in zip(said, some, strict=True)) / len(some)
    assert 0.3 < right < 0.7


def test_a_right_json_row_is_json_and_a_right_lambda_computes():
    assert json.loads(some_rows("json")[0].right[0]).keys() == {"name", "age"}
    row = next(row for row in some_rows("lambda") if "adds" in row.prompt[-1]["content"])
    n = int(row.prompt[-1]["content"].split()[6])
    assert eval(row.right[0])(5) == 5 + n


def test_the_questions_of_lesson_06_are_held_out_and_have_their_answers():
    questions = read_table(ROOT / "grpo_utils/tiny/questions.jsonl")
    ages = {row["question"]: json.loads(row["right"][0]) for row in questions if row["task"] == "json"}
    assert len(ages) == 100 and all(is_held_out(f"{row['name']} {row['age']}") for row in ages.values())
    assert all(row["name"] in asked and str(row["age"]) in asked for asked, row in ages.items())
    facts = {row["question"]: row["right"] for row in questions if row["task"] == "fact"}
    wanted = {asked: [said, f"It is {said}.", f"<answer>{said}</answer>"] for asked, said in FACTS.items()}
    assert facts == {f"What is {asked}?": right for asked, right in wanted.items()}


def test_the_models_are_small_and_of_the_real_architecture(family, model):
    folder = Path(model_path(MODELS[family]))
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 6_000_000
    assert type(model).__name__ == ARCHITECTURES[family] and model.config.hidden_size >= 128
    assert "measured" in (folder / "README.md").read_text()


def test_the_tags_are_one_token_each(tokenizer):
    for tag in ("<reasoning>", "</reasoning>", "<answer>", "</answer>", "<tool_call>"):
        assert len(tokenizer.tokenize(tag)) == 1


@pytest.mark.parametrize("text", ["15 + 27 = 42", "größer, 答え 42 \n\t", "<answer>-1,000.5</answer>"])
def test_any_text_survives_the_tokenizer(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_the_chat_template_ends_a_turn_where_generation_ends(tokenizer):
    messages = [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": "What is 15 + 27?"}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template([*messages, {"role": "assistant", "content": "42"}], tokenize=False)
    assert whole == prompt + "42" + tokenizer.eos_token + "\n"
    assert SYSTEM_PROMPT in prompt


def test_trl_reads_a_tool_call(tokenizer):
    from trl.chat_template_utils import is_chat_template_prefix_preserving, parse_response, supports_tool_calling

    assert supports_tool_calling(tokenizer) and is_chat_template_prefix_preserving(tokenizer)
    row = next(row for row in some_rows("tool") if row.completion.get("tool_calls"))
    prompt = tokenizer.apply_chat_template(row.prompt, tools=row.tools, add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template([*row.prompt, row.completion], tools=row.tools, tokenize=False)
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (whole.removeprefix(prompt), prompt)]
    assert parse_response(tokenizer, ids[0], prefix=ids[1])["tool_calls"] == row.completion["tool_calls"]


def test_trl_reads_a_plain_answer_as_it_stands(tokenizer):
    from trl.chat_template_utils import parse_response

    text = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    for end in (tokenizer.eos_token, ""):  # finished, and cut off
        ids = tokenizer(text + end, add_special_tokens=False)["input_ids"]
        assert parse_response(tokenizer, ids, prefix=[]) == {"role": "assistant", "content": text}


@pytest.fixture(scope="module")
def evaluated(model, tokenizer):
    """Held-out problems, and what the base model answers."""
    from grpo_utils import evaluate, load_rows

    test = load_rows("addition", "test", 390, seed=11)
    return test, evaluate(model, tokenizer, test, max_new_tokens=32)


@pytest.mark.slow
def test_a_base_knows_neither_the_form_nor_the_carry_when_greedy(evaluated):
    test, result = evaluated
    summary = result.summary()
    assert 0.10 <= summary["accuracy"] <= 0.40
    assert summary["greedy_accuracy"] <= 0.2
    said = zip(test["kind"], result.greedy, test["answer"], strict=True)
    right = {kind: [] for kind in ("carry", "no carry")}
    for kind, text, gold in said:
        right[kind].append(f" is {gold}." in text)
    assert sum(right["no carry"]) / len(right["no carry"]) >= 0.95
    assert sum(right["carry"]) / len(right["carry"]) <= 0.10


@pytest.mark.slow
def test_a_base_is_right_with_a_carry_mostly_where_it_adds_digit_by_digit(evaluated):
    test, result = evaluated
    carry = [i for i, kind in enumerate(test["kind"]) if kind == "carry" and result.formed[i]]
    by_digit = [result.right[i] for i in carry if ", " in result.sampled[i]]
    others = [result.right[i] for i in carry if ", " not in result.sampled[i]]
    assert sum(by_digit) / len(by_digit) > 0.8 > 0.5 > sum(others) / len(others)


@pytest.mark.slow
def test_the_smaller_tasks_are_right_sometimes_when_sampled(model, tokenizer):
    from card import ROWS, measure

    counts = measure(model, tokenizer)
    for task in ("json", "lambda", "tool", "fact"):
        assert 0.2 * ROWS <= counts[task][0] <= 0.8 * ROWS, (task, counts[task])


@pytest.mark.slow
@pytest.mark.upgrade
def test_the_builder_learns_in_a_few_steps_and_writes_a_whole_model(family, tmp_path):
    from build import build
    from transformers import AutoModelForCausalLM, AutoTokenizer

    losses = build(family, tmp_path, steps=12)
    assert losses[-1] < losses[0] - 1.0
    assert build(family, tmp_path / "again", steps=2)[:2] == pytest.approx(
        build(family, tmp_path / "b", steps=2), abs=0
    )
    AutoModelForCausalLM.from_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.response_template and loaded.apply_chat_template(
        [{"role": "user", "content": "hi"}], tools=[CALCULATOR]
    )


@pytest.mark.slow
def test_the_shipped_tokenizer_is_what_the_builder_makes(family, tokenizer):
    from build import build_tokenizer

    made = build_tokenizer(family)
    assert made.get_vocab() == tokenizer.get_vocab() and made.chat_template == tokenizer.chat_template


def test_a_held_out_reference_answer_is_strictly_right():
    assert all(is_strictly_right(row.right[0], row.right[0].split("<answer>")[1][: -len("</answer>")])
               for row in some_rows("addition", 50, held_out=True))  # fmt: skip
