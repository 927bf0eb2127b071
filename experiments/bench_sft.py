"""Continue an SFT adapter with GRPO or with more SFT, and write a section of docs/results.md.

    python experiments/bench_sft.py           train what experiments/bench_sft.json lacks
    python experiments/bench_sft.py --write   only write the section, from experiments/bench_sft.json

The tasks, the rows, the arms and their settings are those of lesson 10. All arms start from the same adapter and have
the same constant learning rate. GRPO samples from all new prompts, so every sample is part of the run.

In "Which is larger, 512 or 387?", a policy that always names the first number is right in half of the cases. So each
held-out pair is asked in both orders, and the rows hold which number is named. In "Which number comes after 512?" and
"Sort the digits of 8596.", the answer is not in the question.
"""

import functools
import itertools
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from benches import difference_text, filled, provenance, train_missing, write_section
from lesson_functions import of_lesson
from tiny_runs import USUAL, Policy, milestones_at, sft_trainer, untrained

from grpo_utils import generate, is_strictly_right, show_progress
from grpo_utils.evaluation.statistics import Estimate, paired_difference

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import Trainer

STORED, TITLE = Path(__file__).with_suffix(".json"), "SFT, then GRPO or more SFT"
SEEDS, PROMPTS, SHOWN, NEW = range(5), 200, 100, 400
RATE, FIRST_STEPS = 1e-3, 50  # the first SFT run has steps of 20 worked answers
STEP, SFT_STEPS = 50, (50, 100)  # of 64 sequences each
LARGER, NEXT, SORT = "larger", "next", "sort"
ARMS = ("GRPO", "SFT", "SFT, then GRPO")  # the last one: STEP steps of each


class Case(NamedTuple):
    """A task, how many of its 100 worked answers are wrong, and the arms that were trained."""

    task: str
    wrong: int
    arms: Sequence[str] = ARMS[:2]


CASES = {
    "larger, 100 correct": Case(LARGER, 0, ARMS),
    "larger, 50 of 100 wrong": Case(LARGER, 50),
    "next, 100 correct": Case(NEXT, 0),
    "next, 30 of 100 wrong": Case(NEXT, 30),
    "next, 50 of 100 wrong": Case(NEXT, 50),
    "sort, 50 of 100 wrong": Case(SORT, 50),
}


def asked(a: int, b: int) -> dict:
    """A prompt with its gold answer."""
    return {"prompt": [{"role": "user", "content": f"Which is larger, {a} or {b}?"}], "answer": str(max(a, b))}


def demonstration(a: int, b: int, wrong: bool) -> dict:
    """A worked answer; a wrong one claims that the smaller number is larger."""
    answer, other = (min(a, b), max(a, b)) if wrong else (max(a, b), min(a, b))
    return worked(asked(a, b), f"{answer} > {other}", str(answer))


def asked_next(number: int) -> dict:
    """A prompt of the second task, with its gold answer."""
    question = f"Which number comes after {number}?"
    return {"prompt": [{"role": "user", "content": question}], "answer": str(number + 1)}


def next_demonstration(number: int, wrong: bool) -> dict:
    """A worked answer; a wrong one gives the number before."""
    answer = str(number - 1 if wrong else number + 1)
    return worked(asked_next(number), answer, answer)


def asked_to_sort(digits: str) -> dict:
    """A prompt of the third task, with its gold answer."""
    return {"prompt": [{"role": "user", "content": f"Sort the digits of {digits}."}], "answer": "".join(sorted(digits))}


def sorting_demonstration(digits: str, wrong: bool) -> dict:
    """A worked answer; a wrong one sorts from the largest digit to the smallest."""
    answer = "".join(sorted(digits, reverse=wrong))
    return worked(asked_to_sort(digits), answer, answer)


def worked(row: dict, reasoning: str, answer: str) -> dict:
    text = f"<reasoning>{reasoning}</reasoning><answer>{answer}</answer>"
    return {"prompt": row["prompt"], "completion": [{"role": "assistant", "content": text}]}


class Task(NamedTuple):
    """How a task asks a question, and how a worked answer to it is written; ``space`` is all of its questions."""

    ask: Callable[..., dict]
    show: Callable[..., dict]
    space: Callable[[], Iterable[tuple]]


TASKS = {
    LARGER: Task(asked, demonstration, lambda: itertools.combinations(range(100, 1000), 2)),
    NEXT: Task(asked_next, next_demonstration, lambda: zip(range(100, 999))),
    SORT: Task(asked_to_sort, sorting_demonstration, lambda: zip(map("".join, itertools.permutations("123456789", 4)))),
}


def data(case: str, seed: int) -> tuple["Dataset", "Dataset", list[tuple]]:
    """Worked answers, new prompts and held-out questions; no question is in two of them."""
    from datasets import Dataset

    name, wrong, _ = CASES[case]
    task = TASKS[name]
    every = random.Random(seed).sample(list(task.space()), PROMPTS + SHOWN + NEW)
    if name == LARGER:  # the larger number is first in half of the pairs
        every = [pair[::-1] if n % 2 else pair for n, pair in enumerate(every)]
    shown = [task.show(*question, wrong=n < wrong) for n, question in enumerate(every[PROMPTS:][:SHOWN])]
    new = [task.ask(*question) for question in every[PROMPTS + SHOWN :]]
    return Dataset.from_list(shown), Dataset.from_list(new), every[:PROMPTS]


def trainer_on_answers(policy: Policy, shown: "Dataset", steps: int, batch: int, seed: int) -> "Trainer":
    repeated = shown.select([n % len(shown) for n in range(max(batch, len(shown)))])  # at least one whole batch
    sizes = dict(per_device_train_batch_size=batch, max_steps=steps, dataloader_drop_last=True)
    return sft_trainer(policy, repeated, learning_rate=RATE, seed=seed, **sizes)


def grpo_trainer(policy: Policy, new: "Dataset", seed: int) -> "Trainer":
    from trl import GRPOConfig, GRPOTrainer

    sizes = dict(num_generations=8, per_device_train_batch_size=64, max_completion_length=40, max_steps=STEP)
    config = GRPOConfig(tempfile.mkdtemp(), learning_rate=RATE, seed=seed, **sizes, **USUAL)
    trainer = GRPOTrainer(policy[0], of_lesson("10_sft_then_grpo", "correct"), config, new, processing_class=policy[1])
    show_progress(trainer)
    return trainer


@functools.lru_cache(maxsize=1)
def after_sft(case: str, seed: int) -> tuple[Policy, dict, dict]:
    """The policy after the first SFT run, a copy of its adapter, and what it answers."""
    shown, _, held_out = data(case, seed)
    policy = untrained(seed)
    trainer_on_answers(policy, shown, FIRST_STEPS, batch=20, seed=seed).train()
    adapter = {name: weight.detach().clone() for name, weight in policy[0].named_parameters() if weight.requires_grad}
    return policy, adapter, answered(policy, case, held_out, seed)


def answered(policy: Policy, case: str, held_out: list[tuple], seed: int) -> dict:
    """What one sampled answer to each held-out question is, in numbers.

    ``accuracy`` is strict accuracy, and ``as_shown`` counts the answers that a wrong worked answer would give. Of the
    task *larger*, ``first`` and ``second`` count the answers that name this number, and the swap test adds how many
    pairs are answered correctly in ``both`` orders, only with the larger number first (``only_first``) or only with it
    second (``only_second``). Of the task *next*, ``carries`` are the numbers that end in 9, and ``carries_right`` those
    answered correctly.
    """
    name, task = CASES[case].task, TASKS[CASES[case].task]

    def texts_of(questions: list[tuple]) -> list[str]:
        prompts = [task.ask(*question)["prompt"] for question in questions]
        return generate(*policy, prompts, max_new_tokens=40, temperature=1.0, seed=seed)

    def right(texts: list[str], answers: Iterable) -> list[bool]:
        return [is_strictly_right(text, str(answer)) for text, answer in zip(texts, answers, strict=True)]

    texts, golds = texts_of(held_out), [task.ask(*question)["answer"] for question in held_out]
    found = right(texts, golds)
    told = dict(accuracy=fmean(found))
    if name == SORT:
        return told | dict(as_shown=sum(right(texts, [gold[::-1] for gold in golds])))
    if name == NEXT:
        carries = [is_right for is_right, gold in zip(found, golds, strict=True) if gold.endswith("0")]
        before = sum(right(texts, [int(gold) - 2 for gold in golds]))
        return told | dict(as_shown=before, carries=len(carries), carries_right=sum(carries))
    swapped = right(texts_of([pair[::-1] for pair in held_out]), golds)
    orders = list(zip(found, swapped, strict=True))
    orders = [order if a > b else order[::-1] for (a, b), order in zip(held_out, orders, strict=True)]
    return told | dict(
        first=sum(right(texts, [a for a, _ in held_out])),
        second=sum(right(texts, [b for _, b in held_out])),
        both=orders.count((True, True)),
        only_first=orders.count((True, False)),
        only_second=orders.count((False, True)),
    )


def train(case: str, arm: str, seed: int) -> dict:
    """Continue the adapter of the first SFT run with one arm: what it answers before, and at the milestones."""
    shown, new, held_out = data(case, seed)
    policy, adapter, start = after_sft(case, seed)
    policy[0].load_state_dict(adapter, strict=False)
    if arm == ARMS[2]:
        trainer_on_answers(policy, shown, STEP, batch=64, seed=seed).train()
    if arm == "SFT":
        steps, trainer = SFT_STEPS, trainer_on_answers(policy, shown, SFT_STEPS[-1], batch=64, seed=seed)
    else:
        steps, trainer = [STEP], grpo_trainer(policy, new, seed)
    points: list[dict] = []
    answers: list[dict] = []

    def accuracy() -> float:
        answers.append(answered(policy, case, held_out, seed))
        return answers[-1]["accuracy"]

    trainer.add_callback(milestones_at(steps, accuracy, points))
    trainer.train()
    found = dict(start=start, points=[point | said for point, said in zip(points, answers, strict=True)])
    if arm != "SFT":
        tied = [entry["frac_reward_zero_std"] for entry in trainer.state.log_history if "frac_reward_zero_std" in entry]
        found["tied"] = fmean(tied[-5:])
    return found


def at(rows: list[dict], case: str, arm: str, step: int, key: str = "accuracy") -> list[float]:
    """A number at a step, where step 0 is the end of the first SFT run; one for each seed."""
    mine = sorted((r for r in rows if (r["case"], r["arm"]) == (case, arm)), key=lambda row: row["seed"])
    if not step:
        return [row["start"][key] for row in mine]
    return [point[key] for row in mine for point in row["points"] if point["step"] == step]


def measured_cases(rows: list[dict]) -> list[str]:
    """The cases with all seeds of all their arms."""
    return [c for c in CASES if all(len(at(rows, c, arm, STEP)) == len(SEEDS) for arm in CASES[c].arms)]


def difference(rows: list[dict], case: str, step: int, arm: str = "GRPO") -> Estimate:
    """GRPO, or another arm that ends with it, minus SFT after ``step`` steps, seed by seed."""
    return paired_difference(at(rows, case, arm, STEP), at(rows, case, "SFT", step), PROMPTS)


def follows_place(only_first: int, only_second: int, both: int) -> bool:
    """Whether the pairs that are correct only with the larger number in one place outnumber all other correct pairs.

    >>> follows_place(191, 0, 6), follows_place(10, 42, 117)
    (True, False)
    """
    return 2 * max(only_first, only_second) > only_first + only_second + both


def mistakes(rows: list[dict]) -> str:
    """How many carries are correct, and how many answers are those that a wrong worked answer would give."""
    arms = {"first SFT": ("SFT", 0), "GRPO": ("GRPO", STEP), "more SFT": ("SFT", STEP)}
    lines = [["task, worked answers, what is counted", *arms, "of"]]
    for case in measured_cases(rows):
        kinds = dict(carries_right="correct carries") if CASES[case].task == NEXT else {}
        kinds |= dict(as_shown="answers as in a wrong worked answer") if CASES[case].wrong else {}
        for key, kind in kinds.items() if CASES[case].task != LARGER else ():
            counts = [sum(at(rows, case, *arm, key)) for arm in arms.values()]
            every = sum(at(rows, case, "SFT", 0, "carries")) if key == "carries_right" else PROMPTS * len(SEEDS)
            lines.append([f"{case}: {kind}", *counts, every])
    return table(*lines)


class Tested(NamedTuple):
    """What a policy names on the 200 pairs of the task *larger*, and its swap test."""

    first: int
    second: int
    only_first: int
    only_second: int
    both: int

    @property
    def follows(self) -> bool:
        """Whether the swap test shows that the answers follow a place."""
        return follows_place(self.only_first, self.only_second, self.both)

    def __str__(self) -> str:
        return f"{self.first} : {self.second}, {self.both}{'*' * self.follows}"


def tested(rows: list[dict], case: str, arm: str, step: int) -> list[Tested]:
    """The counts of a policy, seed by seed."""
    return [Tested(*counts) for counts in zip(*(at(rows, case, arm, step, key) for key in Tested._fields), strict=True)]


def table(*lines: Sequence[object]) -> str:
    """A table in Markdown; the first line is its header."""
    header, *rest = (f"| {' | '.join(map(str, line))} |" for line in lines)
    return "\n".join([header, "|" + "---|" * len(lines[0]), *rest])


def accuracies(rows: list[dict]) -> str:
    """The arms of each case, and GRPO minus SFT after each milestone."""
    header = ["task, worked answers", "first SFT", "GRPO", *(f"more SFT, {step} steps" for step in SFT_STEPS)]
    lines = [[*header, *(f"GRPO minus {step} steps" for step in SFT_STEPS)]]
    for case in measured_cases(rows):
        arms = [("SFT", 0), ("GRPO", STEP), *(("SFT", step) for step in SFT_STEPS)]
        means = [f"{fmean(at(rows, case, *arm)):.3f}" for arm in arms]
        lines.append([case, *means, *(difference_text(difference(rows, case, step)) for step in SFT_STEPS)])
    return table(*lines)


def swaps(rows: list[dict]) -> str:
    """What each policy of the task *larger* names, and its swap test, seed by seed."""
    lines = [["worked answers, seed", "first SFT", "GRPO", "more SFT"]]
    for case in measured_cases(rows):
        if CASES[case].task == LARGER:
            found = [tested(rows, case, *arm) for arm in (("SFT", 0), ("GRPO", STEP), ("SFT", STEP))]
            label = case.removeprefix(f"{LARGER}, ")
            lines += [[f"{label}, {seed}", *counts] for seed, *counts in zip(SEEDS, *found, strict=True)]
    return table(*lines)


def one_after_the_other(rows: list[dict]) -> str:
    """SFT and then GRPO, where it was trained, next to SFT alone for as many sequences."""
    arm, (half, whole) = ARMS[2], SFT_STEPS
    lines = [["task, worked answers", f"SFT, {half} steps", "then GRPO", "or as much SFT", "difference"]]
    for case in measured_cases(rows):
        if arm in CASES[case].arms:
            means = [fmean(at(rows, case, *each)) for each in (("SFT", half), (arm, STEP), ("SFT", whole))]
            apart = difference_text(difference(rows, case, whole, arm))
            lines.append([case, *(f"{mean:.3f}" for mean in means), apart])
    return table(*lines)


def flagged(rows: list[dict], arm: str, step: int) -> str:
    """How many policies of the task *larger* follow a place, by the swap test."""
    cases = [case for case in measured_cases(rows) if CASES[case].task == LARGER and arm in CASES[case].arms]
    found = [counts.follows for case in cases for counts in tested(rows, case, arm, step)]
    return f"{sum(found)} of {len(found)}"


def gaps(rows: list[dict], follows: bool) -> list[float]:
    """How far the accuracies with the larger number first and second are apart at the end of GRPO and more SFT.

    Only of the policies that follow a place, or of those that do not.
    """
    cases = [case for case in measured_cases(rows) if CASES[case].task == LARGER]
    found = [counts for case in cases for arm in ARMS[:2] for counts in tested(rows, case, arm, STEP)]
    return [abs(n.only_first - n.only_second) / PROMPTS for n in found if n.follows == follows]


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    rows = stored["rows"]
    cases = measured_cases(rows)
    seconds = [
        fmean(n for case in cases for n in at(rows, case, *arm, "seconds")) for arm in (("GRPO", STEP), ("SFT", STEP))
    ]
    text = filled(
        "sft",
        where=provenance(stored),
        first_steps=FIRST_STEPS,
        step=STEP,
        samples=64 * STEP,
        rate=RATE,
        prompts=PROMPTS,
        seeds=len(SEEDS),
        grpo_seconds=seconds[0],
        sft_seconds=seconds[1],
        accuracies=accuracies(rows),
        mistakes=mistakes(rows),
        swaps=swaps(rows),
        one_after_the_other=one_after_the_other(rows),
        flagged_sft=flagged(rows, "SFT", 0),
        flagged_grpo=flagged(rows, "GRPO", STEP),
        flagged_more=flagged(rows, "SFT", STEP),
        flagged_last=flagged(rows, ARMS[2], STEP),
        smallest_gap=min(gaps(rows, follows=True)),
        largest_gap=max(gaps(rows, follows=False)),
    )
    return f"\n{text}"


def measure() -> None:
    runs = [dict(case=case, seed=seed, arm=arm) for case in CASES for seed in SEEDS for arm in CASES[case].arms]
    train_missing(STORED, runs, train)


if __name__ == "__main__":
    write_section(__doc__, STORED, TITLE, section, measure)
