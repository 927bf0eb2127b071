"""Every number in preflight's texts can be read and followed, however odd the configuration is."""

import re
from functools import cache

from grpo_check.preflights.checking import preflight
from hypothesis import given, settings
from hypothesis import strategies as st
from preflight_runs import HELDOUT, ROWS

from grpo_utils import chat_prompt, model_path
from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU

ARGUMENTS = {name: value for name, value in training_arguments(CPU).items() if name != "steps_per_generation"}
#: A number below zero; preflight's texts hold no other than these, which mean "not given".
NEGATIVE = re.compile(r"(?<![\w.)\]-])-\d+(?:\.\d+)?")
FOR_NOT_GIVEN = {"-1"}


@cache
def tokenizer_of(context):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    tokenizer.model_max_length = context
    return tokenizer


@cache
def question(words):
    return chat_prompt("What is 1 + 2? " * words)


def rows_of(sizes):
    return [{"prompt": question(words), "answer": "3"} for words in sizes]


def lengths_of(rows):
    from grpo_utils.data.filters import prompt_lengths

    return prompt_lengths({"prompt": [row["prompt"] for row in rows]}, tokenizer_of(10**9))


def report_on(arguments, context=1024, rows=None, **other):
    given = {**ARGUMENTS, **arguments}
    return preflight(given, tokenizer=tokenizer_of(context), train=rows, profile=CPU, **other)


def assert_sane(report):
    text = str(report)
    assert not set(NEGATIVE.findall(text)) - FOR_NOT_GIVEN, text
    assert not re.search(r"\b(nan|inf|None)\b", text), text
    assert not re.search(r"(more than|at most|below|of) 0 (tokens|completions|rows)", text), text
    assert not re.search(r"(num_generations|max_completion_length)=[01]\b", said_to_do(report)), text
    assert "0.0 to 0.0" not in text and "here: ." not in text, text


def said_to_do(report):
    return "\n".join(" ".join(finding.fixes) for finding in report.findings)


def followed(report, arguments, rows):
    """The arguments and rows after the advice on the context was followed; None if it cannot be followed."""
    finding = next(finding for finding in report.findings if finding.code == "prompt_too_long")
    dropped = re.search(r"drop the rows whose prompt has more than (\d+) tokens", " ".join(finding.fixes))
    length = re.search(r"max_completion_length=(\d+) or less", " ".join(finding.fixes))
    if not dropped and not length:
        return None
    kept = [row for row, n in zip(rows, lengths_of(rows)) if not dropped or n <= int(dropped[1])]
    return {**arguments, **({"max_completion_length": int(length[1])} if length else {})}, kept


def test_more_completion_than_context_is_said_in_numbers_that_can_be_read():
    report = report_on({"max_completion_length": 1536}, rows=ROWS)
    assert "max_completion_length=1536 leaves 0 of the model's 1024 tokens for the prompt" in str(report), str(report)
    assert re.search(r"Do:  set max_completion_length=9\d\d or less", str(report)), str(report)
    assert "-512" not in str(report)


def test_more_completion_than_context_is_found_without_rows_too():
    report = report_on({"max_completion_length": 1024})
    assert {f.code for f in report.errors} == {"prompt_too_long"} and "below 1024" in str(report), str(report)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([512, 777, 1024, 2048, 4096]),
    st.one_of(st.integers(1, 100_000), st.sampled_from([1, 2, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 100_000])),
    st.lists(st.sampled_from([1, 2, 10, 60, 100, 500, 900]), min_size=1, max_size=6),
    st.integers(2, 64),
    st.sampled_from([1, 2, 3, 7, 16, 64]),
    st.sampled_from([None, 1, 20, 100, 5000]),
)
def test_numbers_are_sane_and_the_advice_on_the_context_helps(context, length, sizes, generations, batch, limit):
    arguments = {
        "max_completion_length": length,
        "num_generations": generations,
        "per_device_train_batch_size": batch,
        "per_device_eval_batch_size": batch,
        "eval_strategy": "steps",
    }
    rows = rows_of(sizes)
    report = report_on(arguments, context, rows, max_prompt_length=limit, heldout=HELDOUT)
    assert_sane(report)
    if "prompt_too_long" in report.codes:
        after = followed(report, arguments, rows)
        if after:
            assert after[1], str(report)
            assert "prompt_too_long" not in report_on(after[0], context, after[1]).codes, str(report)
        else:
            assert min(lengths_of(rows)) > context - 30 or "model with a longer context" in said_to_do(report)


@settings(max_examples=60, deadline=None)
@given(
    *[st.integers(-4, 70)] * 3,
    st.sampled_from([None, -8, 0, 1, 7, 24, 64]),
    st.sampled_from([None, -1, 0, 1, 3, 8]),
    st.integers(1, 9),
    st.sampled_from([-5, -1, 0, 1, 100]),
    st.sampled_from([-1, 0, 0.5, 3]),
)
def test_batches_of_any_size_give_advice_that_helps(
    each, generations, accumulated, at_once, per, processes, most, epochs
):
    arguments = {
        "per_device_train_batch_size": each,
        "per_device_eval_batch_size": each,
        "num_generations": generations,
        "gradient_accumulation_steps": accumulated,
        "generation_batch_size": at_once,
        "steps_per_generation": per,
        "max_steps": most,
        "num_train_epochs": epochs,
        "eval_strategy": "steps",
    }
    report = report_on(arguments, rows=ROWS, heldout=HELDOUT, processes=processes)
    assert not set(NEGATIVE.findall(said_to_do(report))) - FOR_NOT_GIVEN, str(report)
    advice = [fix for one in report.findings if one.code == "batch" for fix in one.fixes]
    for name, number in re.findall(
        r"(num_generations|per_device_train_batch_size)(?: here: |=)(\d+)", " ".join(advice)
    ):
        after = report_on({**arguments, name: int(number)}, rows=ROWS, heldout=HELDOUT, processes=processes)
        assert "batch" not in after.codes, str(report)


def test_a_group_larger_than_any_batch_does_not_end_in_a_traceback():
    report = report_on({"num_generations": 10_007})
    assert "per_device_train_batch_size=10007" in str(report), str(report)


def test_a_batch_of_a_billion_does_not_hang():
    import time

    started = time.process_time()
    report = report_on({"per_device_train_batch_size": 10**9 + 7, "per_device_eval_batch_size": 10**9 + 7})
    assert "batch" in report.codes and time.process_time() - started < 2


def test_no_steps_and_no_epochs_are_no_run():
    report = report_on({"max_steps": -5, "num_train_epochs": 0})
    assert {f.code for f in report.errors} == {"out_of_range"} and "epochs=0 epochs" not in str(report)


def test_a_short_run_is_estimated_in_seconds():
    report = report_on({"max_steps": 1, "per_device_train_batch_size": 8}, rows=ROWS, model=model_path("tiny-qwen3"))
    assert "0.0 to 0.0" not in str(report.estimate) and "seconds of training" in str(report.estimate), str(report)


def test_a_context_of_nothing_is_not_known():
    assert_sane(report_on({}, context=-1, rows=ROWS))
