"""Train with five rewards, and write the page that replays these runs: docs/watch-it-cheat.html.

    python scripts/record_replays.py                        # or: make replays
    python scripts/record_replays.py --real outputs/real    # only read the run of `make real` again
    python scripts/record_replays.py --write                # only write page and picture, from the runs in the page

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

from address import ROOT
from lesson_functions import of_lesson
from replay_animation import animation
from tiny_runs import train_tiny

from grpo_check.replay import Recording, read_run
from grpo_check.replay.page import page_of, run_of, runs_of
from grpo_utils import incremental_format_reward, logged
from grpo_utils.profiles import CPU, prepare_machine
from grpo_utils.rewards import correctness_reward

PAGE, PICTURE = ROOT / "docs" / "watch-it-cheat.html", ROOT / "docs" / "figures" / "cheat.svg"
#: The subtitle, the steps and the curves of the picture.
SUBTITLE = "every tag is paid (lesson 02)"
SHOWN, CURVES = [1, 8, 14, 20, 24, 28, 32, 38], {"reward": "reward (total)", "correct": "correct and in form"}
SEED, TITLE = 0, "Watch it cheat"
#: The last run of the page, and its reward that tells whether an answer is correct.
REAL, CORRECT = "A real model, partial credit: sound", "correctness_reward"
TAGS, WATCHING = "02_rewards", "04_reading_a_run"


@dataclass(frozen=True)
class Run:
    """A run to record.

    Attributes:
        name: what the page calls it.
        begins: what became of the reward.
        about: what it pays for.
        rewards: the reward functions and their weights.
        steps: optimizer steps, as in the lesson.
        changes: what differs from the ``cpu`` profile, as in the lesson.
    """

    name: str
    begins: str
    about: str
    rewards: dict[Callable, float]
    steps: int = 38
    changes: dict = field(default_factory=lambda: {"lr_scheduler_type": "linear"})


truth = of_lesson(TAGS, "truth")
truth.__name__ = "correct and in form"
RUNS = (
    Run(
        "Every tag pays: cheated",
        "The policy cheats this reward.",
        "It is 0.25 for each tag, without an upper limit (lesson 02).",
        {of_lesson(TAGS, "count_tags"): 1.0},
    ),
    Run(
        "Length pays: cheated",
        "The policy cheats this reward.",
        "It grows with the length of the text, and never reads the answer (lesson 04).",
        {of_lesson(WATCHING, "length_reward"): 3.0},
        20,
        {"max_completion_length": 64, "learning_rate": 4e-3},
    ),
    Run(
        "All of a group are paid the same: learns nothing",
        "Nothing can be learned from this reward.",
        "It reads only the correct answer and not the completion, so all completions of a prompt are paid the same "
        "(lesson 04).",
        {of_lesson(WATCHING, "quick_reward"): 1.0},
        20,
        {},
    ),
    Run(
        "Each tag pays once: works here",
        "This reward worked here, although it never reads the answer.",
        "It pays 0.25 once for each of the four tags if it is in its place, and it pays as much for a wrong answer in "
        "the right form as for a correct one (lesson 02).",
        {incremental_format_reward: 1.0},
    ),
    Run(
        "Each tag pays once, a correct answer twice as much: sound",
        "This reward is sound: what is paid and what is wanted rise together.",
        "It is the reward for the form, and one for a correct answer with twice the weight (lesson 02).",
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
        recording = read_run(folder, history, [truth.__name__])
    return replace(recording, name=run.name, story=story(run, log))


def story(run: Run, log: list[dict]) -> str:
    """What to see in a run."""
    reward, right = logged(log, "reward"), logged(log, f"rewards/{truth.__name__}/mean")
    best, first, last = max(right), f"{reward[0]:.2f}", f"{reward[-1]:.2f}"
    change = f"went from {first} to {last}"
    if first == last:
        between = f"{min(reward):.2f} and {max(reward):.2f}"
        change = f"was {first} at first and at the end, and between {between} in the steps between"
    return (
        f"{run.begins} {run.about} In {run.steps} steps, its mean {change}. The "
        f"share of completions that are correct and in the right form was {right[0]:.0%} at first, {best:.0%} at its "
        f"highest (step {right.index(best) + 1}), and {right[-1]:.0%} at the end; it is measured, not paid. Press "
        "Play, or drag the slider, and read what the policy writes."
    )


def read_real(folder: Path) -> dict:
    """The run of `make real` in a folder, for the page."""
    recording = read_run(folder, correctness=[CORRECT])
    steps = [[each for group in step.groups for each in group.completions] for step in recording.steps]
    place = recording.rewards.index(CORRECT)
    right = [fmean(each.rewards[place] for each in step) for step in steps]
    return run_of(replace(recording, name=REAL, story=story_of_real(right)))


def story_of_real(right: list[float]) -> str:
    """What to see in the run of the real model, from the share of correct completions of each step."""
    first = next(step for step, share in enumerate(right, 1) if share)
    return (
        "A real language model, SmolLM2 with 135 million parameters, learns to write an order as JSON: the first "
        f"{len(right)} steps of the command make real. Its rewards are sound: one for a correct object, and partial "
        f"credit for keys, for correct fields, and for an object alone. In this run, no completion was correct before "
        f"step {first}, so until then only partial credit taught it; at the end {fmean(right[-5:]):.0%} were correct "
        "(mean of five steps). "
        "Press Play, or drag the slider, and read what the policy writes."
    )


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
    PAGE.write_text(page_of([*tiny, *real], TITLE), encoding="utf-8")
    PICTURE.write_text(animation(tiny[0], SUBTITLE, SHOWN, CURVES), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)} ({PAGE.stat().st_size / 1e6:.1f} MB) and {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
