"""Preflight on rows and prompts: what counts as missing, doubled, leaked or badly formed, and what does not."""

import pytest
from datasets import Dataset
from grpo_check.preflights import rows as of_rows
from grpo_check.preflights.planned import plan
from preflight_runs import ROWS, changed, check, load_tokenizer

from grpo_utils import chat_prompt


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


def test_text_prompts_to_a_model_with_a_template_are_a_warning():
    rows = texts(load_tokenizer(), lambda prompt: prompt[-1]["content"])
    report = check(train=rows, heldout=None)
    assert report.ok and [f.severity for f in report.findings if f.code == "string_prompt"] == ["warning"], str(report)


@pytest.mark.parametrize("gold", ["['ERROR']", "nan", "#N/A"])
def test_what_a_failure_left_as_a_gold_answer_is_named(gold):
    assert "failed_answer" in check(train=changed(ROWS, answer=gold)).codes  # of one row
    common = [row | {"answer": gold} for row in ROWS[:20]]
    assert "failed_answer" not in check(train=[*common, *ROWS[20:]]).codes  # then it is a label


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


@pytest.mark.parametrize(
    ("row", "conflicts"),
    [
        (ROWS[0] | {"answer": "2000"}, True),
        (ROWS[0] | {"answer": f" {ROWS[0]['answer']} "}, False),
        (ROWS[0] | {"answer": f"{ROWS[0]['answer']}.0"}, False),
        (ROWS[0] | {"answer": None}, False),
        ({"prompt": OTHER, "answer": "2000"}, False),
    ],
    ids=["another answer", "the same with blanks", "the same number", "no answer", "another system prompt"],
)
def test_two_answers_to_one_prompt_are_a_conflict(row, conflicts):
    found = list(of_rows.conflicting_answers(plan({}, train=[*ROWS, row])))
    assert [one.code for one in found] == ["conflicting_answers"] * conflicts
    assert not conflicts or (f"1 of {len(ROWS)} prompts" in found[0].what and "'2000'" in found[0].what)


def test_a_worked_solution_as_the_gold_is_named_unless_the_reward_splits_it():
    def splits(completions, answer, **kwargs):
        return [float(gold.split("####")[1].strip() in str(c)) for c, gold in zip(completions, answer, strict=True)]

    def compares(completions, answer, **kwargs):
        return [float(gold in str(c)) for c, gold in zip(completions, answer, strict=True)]

    solved = [row | {"answer": f"We add.\n#### {row['answer']}"} for row in ROWS]
    for rewards, found in ((None, True), ([compares], True), ([splits], False)):
        of = list(of_rows.worked_solution(plan({}, train=solved, rewards=rewards)))
        assert [one.code for one in of] == ["worked_solution"] * found
    assert not list(of_rows.worked_solution(plan({}, train=ROWS)))


def test_equal_questions_about_different_images_are_no_leak():
    rows = [{**row, "prompt": ROWS[0]["prompt"], "answer": "yes", "image": n} for n, row in enumerate(ROWS)]
    report = check(train=rows, heldout=rows[:4])
    assert not report.codes & {"leak", "duplicates", "conflicting_answers"} and "images are not compared" in str(report)


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


@pytest.mark.parametrize(("more", "said"), [({}, "searched for dup"), ({"image": None}, "did not search for dup")])
def test_the_notes_on_rows_with_images_do_not_contradict_each_other(more, said, monkeypatch):
    monkeypatch.setattr(of_rows, "MOST_COMPARED", 4)
    notes = [*of_rows.notes(plan({}, train=[row | more for row in ROWS]))]
    assert len(notes) == 1 and notes[0].startswith(said)


def test_a_question_with_options_becomes_a_prompt_of_both():
    rows = [{"question": f"Which, {n}?", "choices": ["a", "b"], "answer": "a"} for n in range(40)]
    assert "of 'question' and 'choices'" in str(check(train=rows, heldout=None))


def test_a_column_without_any_value_is_named():
    rows = [row | {"label": "", "source": ""} for row in ROWS]

    def by_label(completions, answer, label, **kwargs):
        return [float(gold in str(c)) for c, gold in zip(completions, answer)]

    said = str(check(train=rows, heldout=None, rewards=by_label))
    assert "'label' has no value in any of 40 rows" in said and "'source'" not in said
