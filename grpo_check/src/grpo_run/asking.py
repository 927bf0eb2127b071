"""Answer questions with the model of a finished run: what ``ask.py`` does."""

from collections.abc import Callable
from pathlib import Path


def asked(arguments: list[str], example: str) -> tuple[Path, list[str]]:
    """The folder and the questions of a command; stop if one of them is missing. ``example`` is a command that works.

    >>> asked(["outputs/basic", "What is 15 + 27?"], "")[1]
    ['What is 15 + 27?']
    """
    if len(arguments) < 2:
        raise SystemExit(f"Error: name a finished run and a question: {example}")
    return Path(arguments[0]), arguments[1:]


def ask(folder: Path, questions: list[str], chat: Callable) -> None:
    """Print the most likely answer to each question, whose prompt ``chat`` writes as in training."""
    from grpo_core.training.generating import generate

    from .held_out import read_answers
    from .trained import load, model_in

    policy, tokenizer, report = load(folder)
    training, prompts = report["config"]["training"], [chat(question) for question in questions]
    if report["config"]["run"].get("examples"):  # as in training; an earlier version had none
        shown = read_answers(model_in(folder).parent)[0]["prompt"][:-1]
        prompts = [[*shown, prompt[-1]] for prompt in prompts]
    answers = generate(
        policy,
        tokenizer,
        prompts,
        max_new_tokens=training["max_completion_length"],
        temperature=0.0,
        chat_template_kwargs=training["chat_template_kwargs"],
    )
    print(*answers, sep="\n\n")
