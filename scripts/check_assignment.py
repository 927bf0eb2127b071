"""Check the assignment of docs/instructor-guide.md, a project whose model answers with one sentence.

    python scripts/check_assignment.py FOLDER

The questions and what is correct are defined here, so the result does not depend on what the project counts as correct.
Each line is printed as soon as it is known; what is missing in the folder comes first. The exit code is 0 if every
line says ok. It runs the project's code, so read that first.
"""

import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

#: What the trained model must reach on 200 held-out questions, in all and among those with a carry.
ACCURACY, CARRY_ACCURACY = 0.8, 0.7
#: Where `train.py` saves the trained adapter, and the model that it belongs to.
MODEL, BASE = Path("outputs/basic/model"), Path("tiny-model")


def sentence(a: int, b: int) -> str:
    """The only correct answer.

    >>> sentence(15, 27)
    '15 + 27 is 42.'
    """
    return f"{a} + {b} is {a + b}."


def cheats(a: int, b: int) -> dict[str, str]:
    """Texts that must earn nothing."""
    swapped = {"the numbers in the other order": f"{b} + {a} is {a + b}."} if a != b else {}
    return swapped | {
        "the sum alone": f"{a + b}",
        "text before the sentence": f"Sure: {sentence(a, b)}",
        "text after the sentence": f"{sentence(a, b)} I am sure.",
        "a sentence without its period": f"{a} + {b} is {a + b}",
        "an exclamation mark": f"{a} + {b} is {a + b}!",
        "an equals sign": f"{a} + {b} = {a + b}.",
        "another verb": f"{a} + {b} equals {a + b}.",
        "capital letters": f"{a} + {b} IS {a + b}.",
        "another question": f"0 + {a + b} is {a + b}.",
        "two sentences": f"{sentence(a, b)} {a} + {b} is {a + b - 10}.",
        "a list of sums": f"{a} + {b} is {', '.join(str(a + b + d) for d in range(-5, 6))}.",
        "the old format": f"<reasoning>{a} + {b}</reasoning><answer>{a + b}</answer>",
        "no text": "",
    }


def wrong_sums(a: int, b: int) -> list[str]:
    """Sentences in the correct form with a sum that is wrong in its tens, and one that is wrong in its last digit."""
    return [f"{a} + {b} is {a + b + error}." for error in (-10, 1)]


def numbers(prompt: list[dict]) -> tuple[int, int]:
    """The two numbers of a question."""
    return tuple(map(int, re.findall(r"\d+", prompt[-1]["content"])))


def earned(rewards: dict, text: str, row: dict) -> float:
    """The weighted sum of a project's rewards for one completion."""
    columns = {name: [value] for name, value in row.items() if name != "prompt"}
    completions = [[{"role": "assistant", "content": text}]]
    scores = [reward(completions=completions, prompts=[row["prompt"]], **columns)[0] for reward in rewards]
    return sum(weight * (score or 0) for weight, score in zip(rewards.values(), scores, strict=True))


def faults(rewards: dict, rows: list[dict]) -> list[str]:
    """What the rewards of a project get wrong: the correct answer, its form with a wrong sum, or a cheat."""
    found = set()
    for row in rows:
        a, b = numbers(row["prompt"])
        best, wrong = earned(rewards, sentence(a, b), row), [earned(rewards, text, row) for text in wrong_sums(a, b)]
        found |= {f"pays for {name}" for name, text in cheats(a, b).items() if earned(rewards, text, row) > 0}
        found |= {f"{w:g} for a wrong sum and {best:g} for the correct one" for w in wrong if not 0 < w <= best / 2}
    return sorted(found)


def correct_answers() -> list[tuple[str, bool]]:
    """For 200 held-out questions, their kind and whether the project's trained model answers them correctly."""
    from grpo_run import start

    settings = start.parse(["--config", "config.cpu.yaml", "--model_name_or_path", str(MODEL)])
    from data import chat
    from grpo_core.training.generating import generate
    from grpo_run.loading import load_policy

    from grpo_utils.data.sources import addition_rows

    policy, tokenizer = load_policy(settings.run, settings.training, settings.model)
    rows = addition_rows(200, "test")
    prompts = [chat(row["prompt"][-1]["content"]) for row in rows]
    texts = generate(policy, tokenizer, prompts, max_new_tokens=settings.training.max_completion_length)
    right = [text.strip() == sentence(*numbers(row["prompt"])) for text, row in zip(texts, rows, strict=True)]
    return [(row["kind"], correct) for row, correct in zip(rows, right, strict=True)]


def place_of(error: Exception) -> str:
    """The file of the project in which an error arose, with its line."""
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    frames += [(Path(error.filename), error.lineno)] if isinstance(error, SyntaxError) else []
    inside = [(f, line) for f, line in frames if f.is_file() and f.resolve().is_relative_to(Path.cwd())]
    return f"{inside[-1][0].name}: line {inside[-1][1]}" if inside else "rewards.py: its rewards"


def of_project(step: Callable[[], list]) -> tuple[list, str]:
    """What a step returns that runs the project's code, or the error with which this code ends."""
    try:
        return step(), ""
    except Exception as error:  # the only place that runs a learner's code
        said = error.msg if isinstance(error, SyntaxError) else error
        return [], f"{place_of(error)}, {type(error).__name__}: {said}"


def faults_of_project() -> list[str]:
    """What the rewards of the project in the current folder get wrong."""
    from data import load_rows
    from rewards import REWARDS

    return faults(REWARDS, list(load_rows("addition", "test", 5, 0)))


def missing() -> list[str]:
    """What the last two criteria need and the folder lacks."""
    wanted = {
        MODEL: f"there is no model in {MODEL}; run train.py, and hand in this folder too",
        BASE: f"there is no folder {BASE}, which the trained adapter belongs to; hand in the project with it",
    }
    return [sentence for folder, sentence in wanted.items() if not folder.is_dir()]


def check() -> Iterator[tuple[bool, str]]:
    """Each criterion for the project in the current folder: whether it is met, and what was found."""
    lacking = missing()
    yield from ((False, f"held-out questions: {what}") for what in lacking)
    tests = subprocess.run([sys.executable, "-m", "pytest", "-q", "test_rewards.py"], capture_output=True, text=True)
    yield tests.returncode == 0, f"tests: {(tests.stdout.strip() or tests.stderr.strip()).splitlines()[-1]}"
    wrong, broken = of_project(faults_of_project)
    yield not wrong and not broken, f"rewards: {broken or '; '.join(wrong) or 'as required'}"
    if lacking or broken:
        return
    answers, broken = of_project(correct_answers)
    yield from [(False, f"held-out questions: {broken}")] if broken else accuracies(answers)


def accuracies(answers: list[tuple[str, bool]]) -> Iterator[tuple[bool, str]]:
    """Whether the model answers enough held-out questions correctly, in all and with a carry."""
    carries = [correct for kind, correct in answers if kind == "carry"]
    for name, right, wanted in (("all", [c for _, c in answers], ACCURACY), ("with a carry", carries, CARRY_ACCURACY)):
        rate = sum(right) / len(right)
        yield rate >= wanted, f"held-out questions, {name}: {rate:.3f} of {len(right)}, wanted {wanted}"


def main(folder: Path) -> None:
    if not (folder / "rewards.py").is_file():
        sys.exit(f"Error: {str(folder)!r} has no rewards.py. Name the folder of a project that was handed in.")
    os.chdir(folder)
    sys.path.insert(0, ".")
    every = True
    for met, what in check():
        print("ok     " if met else "not yet", what, flush=True)
        every = every and met
    sys.exit(not every)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Error: name one folder: python scripts/check_assignment.py FOLDER")
    main(Path(sys.argv[1]))
