"""Train with five rewards, and write the page that replays these runs: docs/watch-it-cheat.html.

    python experiments/record_replays.py                        # or: make replays
    python experiments/record_replays.py --real outputs/real    # only read the run of `make real` again
    python experiments/record_replays.py --write                # only write page and picture, from the runs in the page

Three rewards are the flawed ones of lessons 02 and 04, and two are sound. Each run logs its completions, and with
a weight of 0 also the share of correct answers, so that the page can show where the two part ways. The last run is one
of `make real`, which takes too long to be trained here.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from benches import ROOT
from grpo_check.replay.page import page_of, run_of, runs_of
from grpo_check.replay.read import read_run
from grpo_check.replay.records import Recording
from lesson_functions import of_lesson
from replay_animation import animation
from tiny_runs import train_tiny

from grpo_utils import incremental_format_reward
from grpo_utils.profiles import CPU, prepare_machine
from grpo_utils.rewards import correctness_reward

PAGE, PICTURE = ROOT / "docs" / "watch-it-cheat.html", ROOT / "docs" / "figures" / "cheat.svg"
#: The subtitle, the steps and the curves of the picture.
SUBTITLE = "Every tag is paid 0.25"
SHOWN, CURVES = [1, 8, 14, 20, 24, 28, 32, 38], {"reward": "reward (total)", "correct": "correct and in form"}
SEED, TITLE = 0, "Watch it cheat"
#: The last run of the page, and its reward that tells whether an answer is correct.
REAL, CORRECT = "A real model, partial credit", "correctness_reward"
BEGINS = "A tiny model is trained to add two numbers. It learns what it is paid for."
READ = "What will it write? Press Play, or drag the slider, and read."
TAGS, WATCHING = "02_rewards", "04_reading_a_run"


@dataclass(frozen=True)
class Run:
    """A run to record.

    Attributes:
        name: what the page calls it.
        became: what became of the reward.
        about: what it pays for.
        rewards: the reward functions and their weights.
        steps: optimizer steps, as in the lesson.
        changes: what differs from the ``cpu`` profile, as in the lesson.
    """

    name: str
    became: str
    about: str
    rewards: dict[Callable, float]
    steps: int = 38
    changes: dict = field(default_factory=lambda: {"lr_scheduler_type": "linear"})


truth = of_lesson(TAGS, "truth")
truth.__name__ = "correct and in form"
RUNS = (
    Run(
        "Every tag pays",
        "The policy cheats this reward.",
        "The reward is 0.25 for each tag, without an upper limit (lesson 02 of the course).",
        {of_lesson(TAGS, "count_tags"): 1.0},
    ),
    Run(
        "Length pays",
        "The policy cheats this reward.",
        "The reward grows with the length of the text, and never reads the answer (lesson 04 of the course).",
        {of_lesson(WATCHING, "length_reward"): 3.0},
        20,
        {"max_completion_length": 64, "learning_rate": 4e-3},
    ),
    Run(
        "The answer key is paid",
        "Nothing can be learned from this reward, because all completions of a prompt are paid the same.",
        "The reward looks at the answer key, and not at what the model wrote (lesson 04 of the course).",
        {of_lesson(WATCHING, "quick_reward"): 1.0},
        20,
        {},
    ),
    Run(
        "Each tag pays once",
        "This reward worked here by luck: it never reads the answer, but this model was already mostly correct where "
        "it wrote in the right form.",
        "It pays 0.25 once for each of the four tags if it is in its place, and as much for a wrong answer in the "
        "right form as for a correct one (lesson 02 of the course).",
        {incremental_format_reward: 1.0},
    ),
    Run(
        "Each tag pays once, and a correct answer pays 2",
        "This reward is sound: what is paid and what is wanted rise together.",
        "The model is paid up to 1 for the form, and 2 for a correct answer (lesson 02 of the course).",
        {correctness_reward: 2.0, incremental_format_reward: 1.0},
    ),
)


def record(run: Run) -> Recording:
    """Train, and read what was logged."""
    with TemporaryDirectory() as folder:
        shown = {"log_completions": True, "num_completions_to_print": 0}
        changes = dict(output_dir=folder, reward_weights=[*run.rewards.values(), 0.0], **shown, **run.changes)
        _, log = train_tiny(changes, SEED, run.steps, rewards=[*run.rewards, truth])
        history = Path(folder) / "log.json"
        history.write_text(json.dumps(log), encoding="utf-8")
        return read_run(folder, history, [truth.__name__])


def told(run: Run, recorded: dict) -> dict:
    """The data of a recorded run for the page, with its name and what to see in it."""
    curves = {curve["label"]: [value for _, value in curve["points"]] for curve in recorded["curves"]}
    return {**recorded, "name": run.name, "story": f"{BEGINS} {run.about} {READ}", "ending": ending(run, **curves)}


def ending(run: Run, **curves: list[float]) -> str:
    """What came of a run, from the mean reward and the share of correct completions of each step."""
    reward, right = (curves[label] for label in CURVES.values())
    best, first, last = max(right), f"{reward[0]:.2f}", f"{reward[-1]:.2f}"
    change = f"went from {first} to {last}"
    if first == last:
        between = f"{min(reward):.2f} and {max(reward):.2f}"
        change = f"was {first} at first and at the end, and between {between} in the steps between"
    measured = "Correctness is paid; that both are right is measured."
    measured = measured if correctness_reward in run.rewards else "That share is measured and not paid."
    return (
        f"{run.became} In {run.steps} steps, the mean reward {change}. The share of completions that are correct and "
        f"in the right form was {right[0]:.0%} at first, {best:.0%} at its highest (step {right.index(best) + 1}), "
        f"and {right[-1]:.0%} at the end. {measured}"
    )


def read_real(folder: Path) -> dict:
    """The run of `make real` in a folder, for the page."""
    return run_of(replace(read_run(folder, correctness=[CORRECT]), name=REAL))


def told_of_real(recorded: dict) -> dict:
    """The data of the real model's run, with what to see in it."""
    place = recorded["rewards"].index(CORRECT)
    steps = [[row for group in step["groups"] for row in group["rows"]] for step in recorded["steps"]]
    right = [fmean(rewards[place] for *_, rewards, _ in rows) for rows in steps]
    first = next(step for step, share in enumerate(right, 1) if share)
    return {
        **recorded,
        "story": "A real language model, SmolLM2 with 135 million parameters, learns to write an order as JSON, in the "
        f'{len(right)} steps of the command "make real", with seed 0. It is paid for a correct object, and a little '
        f"for the right keys, for correct fields, and for nothing but the object. {READ}",
        "ending": f"The rewards are sound. In this run, no completion was correct before step {first}, so until then "
        f"only partial credit taught the model. In the last five steps, {fmean(right[-5:]):.0%} were correct.",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="only write page and picture, from the runs in the page")
    parser.add_argument("--real", type=Path, metavar="FOLDER", help="only read the run of `make real` again")
    options = parser.parse_args()
    runs = runs_of(PAGE.read_text(encoding="utf-8"))
    tiny, real = [[run for run in runs if (run["name"] == REAL) is its] for its in (False, True)]
    if options.real:
        real = [read_real(options.real)]
    elif not options.write:
        prepare_machine(CPU)
        tiny = [run_of(record(run)) for run in RUNS]
    tiny = [told(run, recorded) for run, recorded in zip(RUNS, tiny, strict=True)]
    PAGE.write_text(page_of([*tiny, *map(told_of_real, real)], TITLE), encoding="utf-8")
    PICTURE.write_text(animation(tiny[0], SUBTITLE, SHOWN, CURVES), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)} ({PAGE.stat().st_size / 1e6:.1f} MB) and {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
