"""Exercises accept every correct answer, however it is written, and answer a plausible mistake with a hint."""

import re
from functools import cache
from statistics import fmean
from types import SimpleNamespace

import jupytext
import pytest
import torch
from course import ROOT
from lessons import code_of
from real_completions import GOLD

from grpo_utils import check_exercise, logged, paired_change


@cache
def all_cells(number: str) -> list[str]:
    """The code cells of a lesson, as its source has them."""
    [source] = (ROOT / "notebooks" / "source").glob(f"{number}_*.py")
    return code_of(jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent"))


def cells(number: str) -> list[str]:
    """The cells that check the exercises of a lesson."""
    return [cell for cell in all_cells(number) if "check_exercise(" in cell]


def verdict(lesson: str, exercise: int, capsys, **answers: object) -> str:
    """What the cell prints that checks an exercise, with a learner's answers."""
    exec(cells(lesson)[exercise - 1], {"re": re, "check_exercise": check_exercise} | answers)
    return capsys.readouterr().out


def boxes(solution: str) -> str | None:
    found = re.findall(r"\\boxed\{([^{}]*)\}", solution)
    return (found[-1] or None) if found else None


def windows(last: int):
    """The share of tied groups among windows that overlap."""

    def share(rewards, size):
        groups = [rewards[start : start + size] for start in range(len(rewards) - last * (size - 1))]
        return sum(max(group) == min(group) for group in groups) / len(groups)

    return share


def tied(same):
    """The share of groups that are `same`."""

    def share(rewards, size):
        groups = [rewards[start : start + size] for start in range(0, len(rewards), size)]
        return sum(map(same, groups)) / len(groups)

    return share


def trained_once(lesson: str, prediction: str) -> dict:
    """A learner's prediction, and a training run whose outcome is faked: only the format improves (06), the policy
    names the first number (10), no completion adds digit by digit (11)."""
    told, policy = {"PREDICTION": prediction}, lambda: "a policy"
    if lesson == "06":
        base, short = (SimpleNamespace(formed=[formed] * 20, sums=[False] * 20) for formed in (False, True))
        given = {"before": base, "sum_is_correct": lambda result: result.sums, "paired_change": paired_change}
        given |= {"evaluate": lambda *args, **how: short, "decoding": {}, "tokenizer": None, "test_rows": None}
        return told | given | {"short_run": policy}
    if lesson == "10":
        both = SimpleNamespace(right=[True, False]), SimpleNamespace(right=[False, True])  # asked, and swapped
        given = {"pairs": ((9, 1), (2, 8)), "tested": lambda *args: both, "evaluate": lambda *args, **how: None}
        return told | given | {"DECODING": {}, "tokenizer": None, "test_rows": None, "from_longer": policy}
    return told | {"warned": lambda: ["6 + 8 = 14</think>"] * 4, "tokens_of": len}


def learns(ratio, advantage):
    """A negative advantage, wrongly, learns only above the upper limit."""
    return ratio < 1.2 if advantage > 0 else advantage < 0 and ratio > 1.2


def shortcut(first, second, both):
    if max(first, second) <= both:
        return "none"
    return "first" if first > second else "second"


def two_runs(factor: float) -> dict:
    """The logs of two runs that learn the same; the second is paid ``factor`` times as much."""
    shares = {"rewards/correctness_reward/mean": 0.5}
    logs = {"old_log": [{"reward": 1.2} | shares], "new_log": [{"reward": 1.2 * factor} | shares]}
    return logs | {"logged": logged}


def rising(last):
    """A log of 20 steps whose metrics rise or fall to ``last``."""
    return [{"reward": last * step / 19, "entropy": 0.1 - 0.08 * last * step / 19} for step in range(20)]


def without_mean(groups):
    return groups - groups.mean(1, keepdim=True)


def advantages(formula):
    """A learner's `without_std`, and what the lesson defines before it."""
    given = {"torch": torch, "pictured": PICTURED, "predicted": "worse"}
    return given | {"without_std": lambda rewards, size: formula(rewards.view(-1, size)).reshape(-1)}


@cache
def real_model() -> dict:
    """What lesson 05 defines before its first exercise."""
    names = {"fmean": fmean, "test_rows": [{"answer": GOLD}]}
    for cell in all_cells("05"):
        if re.search(r"^(?:FLAT|REWARDS|WRITTEN|EARLY) = ", cell, re.MULTILINE):
            exec(cell, names)
    return names


def partial(reward, guess) -> dict:
    """A learner's fifth reward for lesson 05, of a text and its gold answer, and a prediction."""

    def my_reward(completions, answer, **kwargs):
        return [float(reward(text, gold)) for text, gold in zip(completions, answer, strict=True)]

    return real_model() | {"my_reward": my_reward, "my_guess": guess}


def keys_named(text, gold):
    return fmean(key in text for key in re.findall(r'"\w+"(?=:)', gold))


PICTURED = [3.0, 1.0, 0.25, 3.0, 0.0, 1.0, 0.25, 3.0] + 8 * [1.0]
HEALTHY = rising(1)
RUNS = dict(healthy=HEALTHY, logged=logged, predicted={"reward": "", "entropy": "same"})


def windowed(step, above=0.9):
    """A learner's `end_of_stage` that looks at three steps in a row, and returns ``step`` of the first of them."""

    def end_of_stage(tied):
        places = [n for n in range(len(tied) - 2) if min(tied[n : n + 3]) >= above]
        return step(places[0]) if places else len(tied)

    return end_of_stage


def tied_to_the_end(tied):
    """A learner's `end_of_stage` that ends a stage only if all later groups are tied, too."""
    places = [n for n in range(len(tied) - 2) if min(tied[n:]) >= 0.9]
    return places[0] + 3 if places else len(tied)


def third_tied(tied):
    """A learner's `end_of_stage` that does not start again after a step below 0.9."""
    steps = [step for step, share in enumerate(tied, start=1) if share >= 0.9]
    return steps[2] if len(steps) > 2 else len(tied)


#: Lesson, exercise, and a wrong answer by its name in the lesson.
WRONG = {
    "00.1 only the first task": ("00", 1, {"answers": {"a": "sft"}}),
    "01.1 no strip": ("01", 1, {"read_boxed": boxes}),
    "03.1 windows, cut at the end": ("03", 1, {"tied_share": windows(0)}),
    "03.1 whole windows": ("03", 1, {"tied_share": windows(1)}),
    "03.1 only positive rewards tie": ("03", 1, {"tied_share": tied(lambda group: max(group) == min(group) > 0)}),
    "03.1 first equals last": ("03", 1, {"tied_share": tied(lambda group: group[0] == group[-1])}),
    "03.2 the old weights again": ("03", 2, {"prediction": "as fast", **two_runs(1)}),
    "04.1 nothing breaks": ("04", 1, RUNS | {"mine": HEALTHY}),
    "05.1 nothing": ("05", 1, partial(lambda text, gold: 0, [2, 1])),
    "05.1 long texts": ("05", 1, partial(lambda text, gold: min(len(text) / 200, 1), [2, 1])),
    "05.1 quotes": ("05", 1, partial(lambda text, gold: min(text.count('"') / 10, 1), [2, 1])),
    "05.1 short texts": ("05", 1, partial(lambda text, gold: 1 - len(text) / 1000, [1, 0])),
    "05.1 predicted another": ("05", 1, partial(keys_named, [2, 2])),
    "09.1 counted from 0": ("09", 1, {"end_of_stage": windowed(lambda place: place + 2)}),
    "09.1 not in a row": ("09", 1, {"end_of_stage": third_tied}),
    "09.1 tied to the end": ("09", 1, {"end_of_stage": tied_to_the_end}),
    "09.1 more than 0.9": ("09", 1, {"end_of_stage": windowed(lambda place: place + 3, above=0.91)}),
    "06.1 E": ("06", 1, {"claims_that_hold": lambda: ["B", "D", "E"]}),
    "08.1 the wrong limit": ("08", 1, {"learns": learns}),
    "08.2 still divided": (
        "08",
        2,
        advantages(lambda groups: (groups - groups.mean(1, True)) / groups.std(1, keepdim=True)),
    ),
    "08.2 the mean of the batch": ("08", 2, advantages(lambda groups: groups - 0.5)),
    "08.2 nothing returned": (
        "08",
        2,
        {"torch": torch, "pictured": PICTURED, "predicted": "worse", "without_std": print},
    ),
    "10.1 the other place left out": ("10", 1, {"shortcut": shortcut}),
    "11.1 count": ("11", 1, {"starts_inside": lambda prompt: prompt.count("<think>") > prompt.count("</think>")}),
    "11.1 rfind": ("11", 1, {"starts_inside": lambda prompt: prompt.rfind("<think>") > prompt.rfind("</think>")}),
    "13.1 abs": ("13", 1, {"highest_cost": lambda with_call, without: abs(with_call - without)}),
    "13.1 not below 0": ("13", 1, {"highest_cost": lambda with_call, without: max(with_call - without, 0.0)}),
    "15.2 divided by what was solved": (
        "15",
        2,
        {"lost": lambda before, after: sum(any(b) > any(a) for b, a in zip(before, after, strict=True)) / 3},
    ),
}
GIVEN = {"a": "sft", "b": "grpo", "c": "prompt", "d": "dpo"}
HIDDEN = ["dead_reward", "no_learning", "length_hacking"]


#: Lesson, exercise, and a correct answer that is written in an unusual way.
RIGHT = {
    "00.1 reordered": ("00", 1, {"answers": dict(reversed(GIVEN.items()))}),
    "04.1 a curve breaks": ("04", 1, RUNS | {"mine": rising(0)}),
    "04.2 spaces": ("04", 2, {"hidden": HIDDEN, "codes": ["Dead Reward", "no-learning", "length hacking "]}),
    "05.1 a tuple": ("05", 1, partial(keys_named, (2, 1))),
    "05.1 either of a tie": ("05", 1, partial(lambda text, gold: "{" in text, [2, 1])),
    "06.1 a text": ("06", 1, {"claims_that_hold": lambda: "B, D"}),
    "06.1 a text without a comma": ("06", 1, {"claims_that_hold": lambda: "bd"}),
    "06.1 a set": ("06", 1, {"claims_that_hold": lambda: {"D", " b"}}),
}


#: Lesson, exercise, and a learner's prediction and run, of which any is right.
PREDICTED = {
    "03.2": ("03", 2, {"prediction": "faster", **two_runs(10)}, "'faster'; the run shows 'as fast'"),
    "06.2": ("06", 2, trained_once("06", "both"), "'both'; the run shows 'format'"),
    "10.2": ("10", 2, trained_once("10", "none"), "'none'; the run shows 'first'"),
    "11.2": ("11", 2, trained_once("11", "yes"), "'yes'; the run shows 'no'"),
    "09.2": (
        "09",
        2,
        {
            "prediction": "improved",
            "mine": SimpleNamespace(right=[False] * 20),
            "rival": SimpleNamespace(right=[True] * 20),
            "paired_change": paired_change,
        },
        "'improved'; the run shows 'got worse'",
    ),
    **{
        f"15.1 {shown}": (
            "15",
            1,
            {
                "results": {"before": SimpleNamespace(accuracy=SimpleNamespace(value=0.25))},
                "another_seed": lambda accuracy=accuracy: ("rise", 5, accuracy),
            },
            f"'rise'; the run shows '{shown}'",
        )
        for shown, accuracy in {"rise": 0.5, "fall": 0.1, "level": 0.21}.items()
    },
}


@pytest.mark.parametrize("name", PREDICTED)
def test_any_prediction_is_accepted_and_printed_with_the_outcome(name, capsys):
    lesson, exercise, answers, shown = PREDICTED[name]
    said = verdict(lesson, exercise, capsys, **answers)
    assert f"You predicted {shown}." in said and f"Exercise {exercise}: correct." in said


@pytest.mark.parametrize(("lesson", "stub"), [("06", "short_run"), ("10", "from_longer"), ("11", "warned")])
def test_an_exercise_that_trains_waits_for_the_run_and_asks_for_a_prediction(lesson, stub, capsys):
    missing = trained_once(lesson, "")
    assert "Exercise 2: not attempted yet" in verdict(lesson, 2, capsys, **missing | {stub: lambda: None})
    assert "Hint: First write your prediction" in verdict(lesson, 2, capsys, **missing)


@pytest.mark.parametrize("name", WRONG)
def test_a_plausible_mistake_gets_a_hint(name, capsys):
    lesson, exercise, answers = WRONG[name]
    assert f"Exercise {exercise}: not right yet. Hint: " in verdict(lesson, exercise, capsys, **answers)


@pytest.mark.parametrize("name", RIGHT)
def test_a_correct_answer_in_another_form_is_accepted(name, capsys):
    lesson, exercise, answers = RIGHT[name]
    assert f"Exercise {exercise}: correct." in verdict(lesson, exercise, capsys, **answers)


def capital(same):
    """A reward of lesson 02 with `same` as its comparison of an answer with the gold answer."""

    def reward(completions, answer, **kwargs):
        from grpo_utils.rewards import completion_text, extract_answer

        found = [extract_answer(completion_text(completion)) for completion in completions]
        return [float(same(said, gold)) for said, gold in zip(found, answer, strict=True)]

    return reward


def plain(text: str) -> str:
    return " ".join(re.sub(r"[^a-z ]", "", text.lower()).split()).removeprefix("the answer is ")


def same_city(said: str | None, gold: str) -> bool:
    return bool(said) and plain(said) == plain(gold) != ""


@pytest.mark.parametrize(
    ("same", "texts", "attack"),
    [
        (same_city, "correct.", "correct."),
        (lambda said, gold: plain(said or "") == plain(gold), "correct.", "Hint: "),  # pays nothing where gold is ""
        (lambda said, gold: bool(said) and plain(said).endswith(plain(gold)), "not right yet", None),
        (lambda said, gold: bool(said) and plain(gold) in plain(said), "not right yet", None),
    ],
)
def test_the_capital_reward_must_score_the_texts_and_then_survive_probe(same, texts, attack, capsys):
    from grpo_check import probe

    shown = verdict("02", 2, capsys, probe=probe, capital_reward=capital(same))
    assert re.search(rf"Exercise 2, texts: .*{texts}", shown)
    assert re.search(rf"Exercise 2, probe: .*{attack}", shown) if attack else "probe" not in shown
