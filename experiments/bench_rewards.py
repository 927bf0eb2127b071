"""Measure the numbers in docs/rewards.md and write its second half.

    python experiments/bench_rewards.py

It uses one core. Speeds are the best of three passes over chat completions; `correctness_reward` never gets the same
number twice. GSM8K rows come from the file in GSM8K_FILE; without it, the page says that they were not measured.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import hostile
from benches import ROOT, filled, measured_on, peak_memory, provenance, refuse_arguments, write_below
from grpo_check.probes.forms import FORMS
from grpo_check.probes.matrix import cases
from grpo_core.training.measuring import wilson_interval

from grpo_utils.data.sources import gsm8k_rows
from grpo_utils.profiles import CPU, prepare_machine
from grpo_utils.rewards import (
    AnswerReward,
    as_chat,
    correctness_reward,
    exact_reward,
    extract_boxed,
    fuzzy_reward,
    incremental_format_reward,
    json_reward,
    same_expression,
    strict_format_reward,
    think_format_reward,
)

PAGE = ROOT / "docs" / "rewards.md"
MARK = "<!-- measured: written by `make bench-rewards`, do not edit below -->"
BOXED = next(form for form in FORMS if str(form) == "… \\boxed{…}")
GOLDS = ["42", "-5", "1250", "0.5", "3/4", "100", "7", "-0.25", "1000000", "18"]
FORM_REWARDS = [strict_format_reward, incremental_format_reward, think_format_reward]
SLOWER = [exact_reward, fuzzy_reward, json_reward]
HOSTILE, COMPARED = 30_000, 20_000  # completions for each of seven rewards, and pairs of expressions
boxed_reward = AnswerReward(extract=extract_boxed)


def tagged(answer: object) -> str:
    return f"<reasoning>First I add 15 and 27. Then the sum is {answer}.</reasoning><answer>{answer}</answer>"


def rate(reward: Callable, texts: list[str], golds: list[str]) -> float:
    """Completions per second, best of three passes."""
    completions, seconds = [as_chat(text) for text in texts], []
    for _ in range(3):
        started = time.perf_counter()
        reward(completions=completions, answer=golds, solution=golds)
        seconds.append(time.perf_counter() - started)
    return len(texts) / min(seconds)


def numbers(count: int, start: int) -> tuple[list[str], list[str]]:
    """Completions and gold answers with different numbers; every second one is wrong, some have commas or currency."""
    golds = [str(1000 + start + i) for i in range(count)]
    said = [f"{int(gold) + i % 2:,}" if i % 3 else f"${int(gold) + i % 2}" for i, gold in enumerate(golds)]
    return [tagged(answer) for answer in said], golds


def numeric_rate() -> float:
    """The speed of the fast path for numbers; each pass has numbers that no cache has seen."""
    rates, count = [], 60_000
    for start in (0, count, 2 * count):
        texts, golds = numbers(count, start)
        completions, started = [as_chat(text) for text in texts], time.perf_counter()
        correctness_reward(completions, golds)
        rates.append(count / (time.perf_counter() - started))
    return max(rates)


def trl_rate() -> float:
    """TRL's accuracy_reward on the same numbers, in boxes."""
    from trl.rewards import accuracy_reward

    golds = [str(1000 + i) for i in range(1_000)]
    return rate(accuracy_reward, [f"So it is \\boxed{{{int(g) + i % 2}}}" for i, g in enumerate(golds)], golds)


def agreement() -> tuple[int, int, list[str]]:
    """For its boxed completions: how many scores equal TRL's, of how many, and which differ."""
    from trl.rewards import accuracy_reward

    alike, unlike, total = 0, {}, 0
    for gold in GOLDS:
        tried = [c for c in cases(BOXED, gold, GOLDS) if c.role in ("clean", "writing", "wrong", "missing") and c.text]
        completions = [as_chat(case.text) for case in tried]
        ours = boxed_reward(completions, answer=[gold] * len(tried))
        theirs = accuracy_reward(completions, solution=[gold] * len(tried))
        for case, a, b in zip(tried, ours, theirs, strict=True):
            total, alike = total + 1, alike + (a == b)
            if a != b:
                unlike.setdefault(f"{case.what}: ours {a:g}, TRL's {b:g}", case.text.rpartition("\\boxed")[2])
    return alike, total, [f"{what} (`\\boxed{said}`)" for what, said in sorted(unlike.items())]


def gsm8k() -> str:
    """Every reference solution with its own gold answer and with another row's."""
    path = os.environ.get("GSM8K_FILE")
    if not path:
        return "GSM8K: not measured, because GSM8K_FILE was not set."
    from trl.rewards import accuracy_reward

    records = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    golds = [row["answer"] for row in gsm8k_rows(records)]
    texts = [f"<reasoning>a</reasoning><answer>{r['answer'].split('#### ')[1]}</answer>" for r in records]
    right = correctness_reward(texts, golds)
    pairs = zip(correctness_reward(texts, golds[1:] + golds[:1]), golds, golds[1:] + golds[:1], strict=True)
    others = [score for score, own, other in pairs if own != other]
    low, _ = wilson_interval(int(sum(right)), len(right))
    said = [as_chat(f"\\boxed{{{gold}}}") for gold in golds] * 2
    wanted = golds + golds[1:] + golds[:1]
    ours, theirs = boxed_reward(said, answer=wanted), accuracy_reward(said, solution=wanted)
    alike = sum(a == b for a, b in zip(ours, theirs, strict=True))
    return (
        f"On the test set of GSM8K (n = {len(records)}), {sum(right):.0f} of {len(right)} reference answers score as "
        f"correct (the 95% interval starts at\n{low:.4f}). We also compared each reference answer with the next row's "
        f"gold answer. If the two rows have different\ngold answers, {sum(others):.0f} of {len(others)} score as "
        "correct. In a third test, we wrote each gold answer in a box and compared it with its\nown and the next row's "
        f"gold answer. Our scores equal those of TRL's `accuracy_reward` in {alike} of {len(wanted)} cases."
    )


def lesson() -> tuple[float, float]:
    """Seconds and GB of lesson 02 from start to end, through the course's own command."""
    command = [sys.executable, "-m", "grpo_utils", "run", str(ROOT / "notebooks" / "02_rewards.ipynb"), "--solutions"]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        peak = peak_memory(Path(folder), command)
        return time.perf_counter() - started, peak


def speeds() -> str:
    mixture = [tagged(42), "15 + 27 is 42.", "<reasoning>15 + 27 = 42 <answer>42", '{"age": 3}']
    texts, golds = mixture * 25_000, ["42"] * 100_000
    rows = [(reward.__name__, rate(reward, texts, golds)) for reward in [*FORM_REWARDS, *SLOWER]]
    rows += [
        ("correctness_reward, plain numbers", numeric_rate()),
        ("TRL's accuracy_reward, plain numbers", trl_rate()),
    ]
    return "\n".join(f"| `{name}` | {speed:,.0f} |" for name, speed in rows)


def expression_milliseconds() -> float:
    pairs = [(f"\\frac{{{n}}}{{\\sqrt{{7}}}}", f"\\frac{{{n}\\sqrt{{7}}}}{{7}}") for n in range(1, 101)]
    same_expression(*pairs[0])
    started = time.perf_counter()
    assert all(same_expression(said, gold) for said, gold in pairs[1:])
    return 1000 * (time.perf_counter() - started) / 99


def hostile_seconds() -> tuple[float, float]:
    """The seconds for a completion with a tower of exponents: our reward's and TRL's."""
    from trl.rewards import accuracy_reward

    tower, seconds = [as_chat("\\boxed{9^{9^{9^{9}}}}")], []
    for reward in (boxed_reward, accuracy_reward):
        started = time.perf_counter()
        reward(completions=tower, answer=["42"], solution=["42"])
        seconds.append(time.perf_counter() - started)
    return seconds[0], seconds[1]


def costs(reward: Callable, texts: list[str]) -> list[float]:
    """Milliseconds of CPU time for each completion, sorted."""
    spent = []
    for text in texts:
        started = time.process_time()
        reward(completions=[text], answer=["42"], solution=["42"])
        spent.append(1000 * (time.process_time() - started))
    return sorted(spent)


def cost_table(count: int) -> str:
    """p50, p99 and maximum of each reward's time per completion, for well-formed and hostile completions."""
    rows = []
    for reward in [*FORM_REWARDS, *SLOWER, correctness_reward]:
        for kind, texts in (
            ("well-formed", [tagged(number) for number in range(count // 10)]),
            ("hostile", list(hostile.completions(count))),
        ):
            spent = costs(reward, texts)
            middle, high = spent[len(spent) // 2], spent[int(0.99 * len(spent))]
            rows.append(f"| `{reward.__name__}` | {kind} | {middle:.3f} | {high:.3f} | {spent[-1]:.1f} |")
    return "\n".join(rows)


def slowest_comparison(count: int) -> float:
    """Milliseconds of CPU time for the slowest of random comparisons by math-verify."""
    same_expression("x", "x+1")
    slowest = 0.0
    for said, gold in hostile.expression_pairs(count):
        started = time.process_time()
        same_expression(said, gold)
        slowest = max(slowest, time.process_time() - started)
    return 1000 * slowest


def probe_seconds() -> float:
    """The seconds of a process's first probe, including its imports."""
    code = "import time; from grpo_check import probe; from grpo_utils import correctness_reward"
    code += "; s = time.perf_counter(); probe(correctness_reward); print(time.perf_counter() - s)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def measured() -> str:
    alike, total, unlike = agreement()
    low, high = wilson_interval(alike, total)
    ours, theirs = hostile_seconds()
    seconds, peak = lesson()
    text = filled(
        "rewards",
        where=provenance(measured_on(("trl", "math-verify", "rapidfuzz"))),
        speeds=speeds(),
        well_formed=HOSTILE // 10,
        hostile=HOSTILE,
        costs=cost_table(HOSTILE),
        compared=COMPARED,
        slowest=slowest_comparison(COMPARED),
        typical=expression_milliseconds(),
        ours=1000 * ours,
        theirs=theirs,
        probe=probe_seconds(),
        lesson=seconds,
        peak=peak,
        gsm8k=gsm8k(),
        golds=len(GOLDS),
        alike=alike,
        total=total,
        rate=alike / total,
        low=low,
        high=high,
        unlike="\n".join(f"- {line}" for line in unlike),
    )
    return f"{MARK}\n\n{text}"


def main() -> None:
    refuse_arguments(__doc__)
    prepare_machine(CPU)
    write_below(PAGE, MARK, measured())
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
