"""Check the assignment of docs/instructor-guide.md, a project whose model answers with one sentence.

    python scripts/check_assignment.py FOLDER

The questions and what is correct are defined here, so the result does not depend on what the project counts as correct.
The exit code is 0 if every line says ok. It runs the project's code, so read that first.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

#: What the trained model must reach on 200 held-out questions, in all and among those with a carry.
ACCURACY, CARRY_ACCURACY = 0.8, 0.7


def sentence(a: int, b: int) -> str:
    """The only correct answer.

    >>> sentence(15, 27)
    '15 + 27 is 42.'
    """
    return f"{a} + {b} is {a + b}."


def cheats(a: int, b: int) -> dict[str, str]:
    """Texts that must earn nothing."""
    return {
        "the sum alone": f"{a + b}",
        "another question": f"0 + {a + b} is {a + b}.",
        "two sentences": f"{sentence(a, b)} {a} + {b} is {a + b - 10}.",
        "a list of sums": f"{a} + {b} is {', '.join(str(a + b + d) for d in range(-5, 6))}.",
        "the old format": f"<reasoning>{a} + {b}</reasoning><answer>{a + b}</answer>",
        "no text": "",
    }


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
        best, wrong = earned(rewards, sentence(a, b), row), earned(rewards, f"{a} + {b} is {a + b - 10}.", row)
        found |= {f"pays for {name}" for name, text in cheats(a, b).items() if earned(rewards, text, row) > 0}
        if not 0 < wrong <= best / 2:
            found.add(f"{wrong:g} for a wrong sum and {best:g} for the correct one")
    return sorted(found)


def correct_answers() -> list[tuple[str, bool]]:
    """For 200 held-out questions, their kind and whether the project's trained model answers them correctly."""
    from lib import start

    trained = ["--model_name_or_path", "outputs/basic/model"]
    settings = start.parse(["--config", "config.cpu.yaml", *trained])
    from data import chat
    from lib.generating import generate
    from lib.policy import load_policy

    from grpo_utils.data.sources import addition_rows

    policy, tokenizer = load_policy(settings.run, settings.training, settings.model)
    rows = addition_rows(200, "test")
    prompts = [chat(row["prompt"][-1]["content"]) for row in rows]
    texts = generate(policy, tokenizer, prompts, max_new_tokens=settings.training.max_completion_length)
    right = [text.strip() == sentence(*numbers(row["prompt"])) for text, row in zip(texts, rows, strict=True)]
    return [(row["kind"], correct) for row, correct in zip(rows, right, strict=True)]


def check() -> list[tuple[bool, str]]:
    """Each criterion for the project in the current folder: whether it is met, and what was found."""
    tests = subprocess.run([sys.executable, "-m", "pytest", "-q", "test_rewards.py"], capture_output=True, text=True)
    found = [(tests.returncode == 0, f"tests: {tests.stdout.strip().splitlines()[-1]}")]
    from data import load_rows
    from rewards import REWARDS

    wrong = faults(REWARDS, list(load_rows("addition", "test", 5, 0)))
    found.append((not wrong, f"rewards: {'; '.join(wrong) or 'as required'}"))
    answers = correct_answers()
    carries = [correct for kind, correct in answers if kind == "carry"]
    for name, right, wanted in (("all", [c for _, c in answers], ACCURACY), ("with a carry", carries, CARRY_ACCURACY)):
        rate = sum(right) / len(right)
        found.append((rate >= wanted, f"held-out questions, {name}: {rate:.3f} of {len(right)}, wanted {wanted}"))
    return found


def main(folder: Path) -> None:
    os.chdir(folder)
    sys.path.insert(0, ".")
    found = check()
    for met, what in found:
        print("ok     " if met else "not yet", what)
    sys.exit(not all(met for met, _ in found))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1], "rewards.py").is_file():
        sys.exit("Error: name the folder of a project with rewards.py: python scripts/check_assignment.py FOLDER")
    main(Path(sys.argv[1]))
