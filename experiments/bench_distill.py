"""Compare GRPO with distillation from three teachers, and write a section of docs/results.md.

    python experiments/bench_distill.py           train what experiments/bench_distill.json lacks
    python experiments/bench_distill.py --write   only write the section, from experiments/bench_distill.json

The student is the tiny model. For each seed, one GRPO run gives two teachers of addition: it is stopped early (weak)
and at its end (good). The third teacher knows a task that the student never answers correctly, and learned it by SFT.
Every run has steps of 64 sequences. Each method has the best of the same three learning rates.
"""

import copy
import functools
import random
import tempfile
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

import bench_sft
from benches import difference_text, filled, provenance, train_missing, write_section
from tiny_runs import USUAL, Policy, milestones_at, sft_trainer, train_tiny, untrained

from grpo_utils import evaluate, evaluate_samples, load_rows, pass_rates, show_progress
from grpo_utils.evaluation.statistics import Estimate, paired_difference
from grpo_utils.rewards import correctness_reward

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, Trainer

STORED, TITLE = Path(__file__).with_suffix(".json"), "Distillation, SFT and GRPO"
SEEDS, PROMPTS, TRAIN = range(4), 200, 2000
NEW_SEEDS = range(3)  # of the new task
BATCH, STEPS = 64, (5, 10, 20, 30)  # sequences per step; when a run is evaluated
RATES, SEARCH_SEED, SEARCH_STEPS = (1e-3, 2e-3, 4e-3), 100, (20,)
WEAK_STEPS, GOOD_STEPS, TEACHER_RATE = 7, 40, 2e-3  # the run that makes the teachers of addition
LARGER_STEPS, WORKED = 300, 2000  # the SFT run that makes the teacher of the new task
ARMS = ("GRPO", "distillation", "SFT", "filtered SFT")
OWN, OWN_SEEDS = "SDPO", range(3)  # self-distillation, on addition, with GRPO's rate
#: What the student learns, and from whom.
CASES = {"good": "addition", "weak": "addition", "new task": "larger"}
TITLES = {
    "good": "A good teacher of addition",
    "weak": "A weak teacher of addition",
    "new task": "A teacher of a task that the student never solves",
}
#: GRPO has no teacher, so it is trained once for each task. Only the weak teacher is often wrong, so only its answers
#: are also filtered.
MEASURED = {"good": ARMS[:3], "weak": ARMS[1:], "new task": ARMS[:3]}
TOKENS = {"addition": 32, "larger": 40}
#: The comparison of speed: with the good teacher, until this step, at the better of two rates there for both arms.
EARLY, EARLY_STEP, EARLY_RATE, EARLY_ARMS = "good, early", 10, 2e-3, ARMS[:2]


class Task(NamedTuple):
    """Prompts for training, for the choice of a learning rate, and for the results."""

    new: "Dataset"
    chosen_on: "Dataset"
    held_out: "Dataset"


@functools.cache
def task(name: str, seed: int) -> Task:
    from datasets import Dataset

    if name == "addition":
        held_out = load_rows("addition", "test", PROMPTS + 190)
        parts = (held_out.select(range(PROMPTS, PROMPTS + 190)), held_out.select(range(PROMPTS)))
        return Task(load_rows("addition", "train", TRAIN, seed), *parts)
    pairs = larger_pairs(seed)
    parts = (pairs[PROMPTS + WORKED :], pairs[:PROMPTS], pairs[:PROMPTS])
    return Task(*(Dataset.from_list([bench_sft.asked(*pair) for pair in part]) for part in parts))


@functools.cache
def larger_pairs(seed: int) -> list[tuple[int, int]]:
    """Pairs of different numbers: held out, then for the teacher's worked answers, then for the student."""
    draw, pairs = random.Random(seed), {}
    while len(pairs) < PROMPTS + WORKED + TRAIN:
        a, b = draw.sample(range(100, 1000), 2)
        pairs.setdefault(tuple(sorted((a, b))), (a, b))
    return list(pairs.values())


def task_of(case: str) -> str:
    """The task of a case."""
    return CASES["good" if case == EARLY else case]


@functools.lru_cache(maxsize=3)
def teacher(case: str, seed: int) -> tuple["PreTrainedModel", dict]:
    """A merged model, and its accuracy on the held-out prompts."""
    model, tokenizer = larger_teacher(seed) if case == "new task" else addition_teachers(seed)[case]
    rows = task(task_of(case), seed).held_out
    found = evaluate(model, tokenizer, rows, max_new_tokens=TOKENS[task_of(case)], temperature=1.0, seed=seed)
    return model, dict(sampled=found.accuracy.value, greedy=found.greedy_accuracy.value)


@functools.lru_cache(maxsize=1)
def addition_teachers(seed: int) -> dict[str, Policy]:
    """One GRPO run, merged after ``WEAK_STEPS`` and at its end. No student has its seed."""
    from transformers import TrainerCallback

    kept: dict[str, Policy] = {}

    class Keep(TrainerCallback):
        def __init__(self, policy: Policy) -> None:
            self.policy = policy

        def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
            if state.global_step == WEAK_STEPS:
                kept["weak"] = merged(self.policy)

    how = dict(learning_rate=TEACHER_RATE)
    policy, _ = train_tiny(how, 1000 + seed, GOOD_STEPS, rewards=[correctness_reward], milestones=Keep)
    good = merged(policy)
    return kept | {"good": good, EARLY: good}


@functools.lru_cache(maxsize=1)
def larger_teacher(seed: int) -> Policy:
    """A policy after SFT on many correct worked answers, merged."""
    from datasets import Dataset

    pairs = larger_pairs(seed)[PROMPTS : PROMPTS + WORKED]
    shown = Dataset.from_list([bench_sft.demonstration(*pair, wrong=False) for pair in pairs])
    policy = untrained(1000 + seed)
    sft_trainer(policy, shown, **settings(1000 + seed, TEACHER_RATE, LARGER_STEPS), dataloader_drop_last=True).train()
    return merged(policy)


def merged(policy: Policy) -> Policy:
    return copy.deepcopy(policy[0]).merge_and_unload().eval(), policy[1]


def milestones(seed: int) -> tuple[int, ...]:
    """The steps after which a run is evaluated; it ends with the last of them."""
    return SEARCH_STEPS if seed == SEARCH_SEED else STEPS


def settings(seed: int, rate: float, steps: int = 0) -> dict:
    steps = steps or milestones(seed)[-1]
    return USUAL | dict(seed=seed, learning_rate=rate, max_steps=steps, per_device_train_batch_size=BATCH)


def rewarded(arm: str, policy: Policy, rows: "Dataset", tokens: int, rate: float, seed: int) -> "Trainer":
    """GRPO, or self-distillation: for a wrong completion, the student also reads a correct one of the same group."""
    if arm == OWN:
        from trl.experimental.sdpo import SDPOConfig as Config
        from trl.experimental.sdpo import SDPOTrainer as Trainer
    else:
        from trl import GRPOConfig as Config
        from trl import GRPOTrainer as Trainer

    sizes = dict(num_generations=8, max_completion_length=tokens)
    config = Config(tempfile.mkdtemp(), **settings(seed, rate), **sizes)
    return Trainer(policy[0], correctness_reward, config, rows, processing_class=policy[1])


def distiller(
    policy: Policy, model: "PreTrainedModel", rows: "Dataset", tokens: int, rate: float, seed: int
) -> "Trainer":
    from trl import DistillationConfig, DistillationTrainer

    config = DistillationConfig(tempfile.mkdtemp(), **settings(seed, rate), max_completion_length=tokens, beta=1.0)
    return DistillationTrainer(policy[0], model, config, train_dataset=rows, processing_class=policy[1])


@functools.lru_cache(maxsize=2)
def answers(case: str, seed: int) -> tuple["Dataset", list[bool], float]:
    """As many of the teacher's answers as the student is trained on, which are correct, and the CPU seconds."""
    model, tokenizer = teacher(case, seed)[0], untrained(seed)[1]
    rows = task(CASES[case], seed).new
    rows = rows.select([n % len(rows) for n in range(BATCH * milestones(seed)[-1])])
    started = process_time()
    decoding = dict(samples=1, max_new_tokens=TOKENS[CASES[case]], temperature=1.0, seed=seed)
    said = evaluate_samples(model, tokenizer, rows, **decoding)
    seconds = process_time() - started
    texts = [[dict(role="assistant", content=one)] for (one,) in said.texts]
    shown = rows.select_columns("prompt").add_column("completion", texts)
    return shown, [right for (right,) in said.right], seconds


def trainer_of(case: str, arm: str, policy: Policy, rate: float, seed: int) -> "Trainer":
    rows, tokens = task(task_of(case), seed).new, TOKENS[task_of(case)]
    if arm in ("GRPO", OWN):
        return rewarded(arm, policy, rows, tokens, rate, seed)
    if arm == "distillation":
        return distiller(policy, teacher(case, seed)[0], rows, tokens, rate, seed)
    shown, right, _ = answers(case, seed)
    if arm == "filtered SFT":
        kept = [n for n, good in enumerate(right) if good]
        shown = shown.select([kept[n % len(kept)] for n in range(len(shown))])
    return sft_trainer(policy, shown, **settings(seed, rate), dataloader_drop_last=True)


def train(case: str, arm: str, seed: int, rate: float) -> dict:
    """One student: its accuracy before and at the milestones, with the CPU seconds, and what the teacher reached."""
    name, policy = task_of(case), untrained(seed)
    parts = task(name, seed)
    rows = parts.chosen_on if seed == SEARCH_SEED else parts.held_out
    decoding = dict(max_new_tokens=TOKENS[name], temperature=1.0, seed=seed)

    def accuracy() -> float:
        return fmean(pass_rates(*policy, rows, samples=1, **decoding))

    points: list[dict] = []
    trainer, start = trainer_of(case, arm, policy, rate, seed), accuracy()
    show_progress(trainer)
    trainer.add_callback(milestones_at(milestones(seed), accuracy, points))
    trainer.train()
    end = evaluate(*policy, rows, **decoding)
    found = dict(start=start, points=points, greedy=end.greedy_accuracy.value)
    if arm in ("SFT", "filtered SFT"):
        found |= dict(sampling=round(answers(case, seed)[2], 2), correct=fmean(answers(case, seed)[1]))
    return found if arm in ("GRPO", OWN) else found | dict(teacher=teacher(case, seed)[1])


def best_rate(rows: list[dict], arm: str) -> float:
    """The rate with the highest accuracy after the last step of the search; filtered SFT has that of SFT."""
    arm = "SFT" if arm == "filtered SFT" else arm
    tried = [row for row in rows if row["seed"] == SEARCH_SEED and row["arm"] == arm]
    return max(tried, key=lambda row: row["points"][-1]["accuracy"])["rate"]


def of(rows: list[dict], case: str, arm: str) -> list[dict]:
    """The runs of an arm, by seed. GRPO has no teacher: its runs on addition are those of both teachers."""
    case = "good" if (case, arm) == ("weak", "GRPO") else case
    mine = [row for row in rows if (row["case"], row["arm"]) == (case, arm) and row["seed"] != SEARCH_SEED]
    return sorted(mine, key=lambda row: row["seed"])


def at(rows: list[dict], case: str, arm: str, step: int, key: str = "accuracy") -> list[float]:
    """Accuracy, or CPU seconds, after a step, seed by seed."""
    return [point[key] for row in of(rows, case, arm) for point in row["points"] if point["step"] == step]


def of_teacher(rows: list[dict], case: str, key: str = "sampled") -> list[float]:
    """A rate of a case's teacher, seed by seed."""
    return [row["teacher"][key] for row in of(rows, case, "distillation")]


def seconds(rows: list[dict], case: str, arm: str, step: int) -> float:
    """CPU seconds until a step, the mean of the seeds: training, and the teacher's share of the answers for SFT."""
    sampling = fmean(row.get("sampling", 0.0) for row in of(rows, case, arm)) * step / STEPS[-1]
    return sampling + fmean(at(rows, case, arm, step, "seconds"))


def arms_of(case: str) -> list[str]:
    """The arms of a case in the order of the tables."""
    return [arm for arm in ARMS if arm in MEASURED[case] or arm == "GRPO"]


def against_teacher(rows: list[dict], case: str, arm: str) -> Estimate:
    """Accuracy after the last step minus that of the teacher, seed by seed."""
    return paired_difference(at(rows, case, arm, STEPS[-1]), of_teacher(rows, case), PROMPTS)


def against_grpo(rows: list[dict], case: str, arm: str, step: int) -> Estimate:
    """Accuracy minus that of GRPO after the same number of steps, seed by seed."""
    return paired_difference(at(rows, case, arm, step), at(rows, case, "GRPO", step), PROMPTS)


def line(rows: list[dict], case: str, arm: str) -> str:
    """An arm as a row of a case's table."""
    last = STEPS[-1]
    rates = [f"{fmean(at(rows, case, arm, step)):.3f}" for step in STEPS]
    late = "-" if arm == "GRPO" else difference_text(against_grpo(rows, case, arm, last))
    costs = f"{seconds(rows, case, arm, last):.1f}"
    return f"| {' | '.join([arm, *rates, costs, late, difference_text(against_teacher(rows, case, arm))])} |"


def table(rows: list[dict], case: str) -> str:
    """A case with its teacher, as a heading and a table."""
    rates = ", ".join(f"{rate:.3f}" for rate in of_teacher(rows, case))
    steps = " | ".join(f"{step} steps" for step in STEPS)
    lines = "\n".join(line(rows, case, arm) for arm in arms_of(case))
    return f"""**{TITLES[case]}.** Sampled accuracy of the teacher, seed by seed: {rates}.

| arm | {steps} | seconds | minus GRPO, {STEPS[-1]} steps | minus its teacher |
|---|{"---|" * len(STEPS)}---|---|---|
{lines}
"""


def tried(rows: list[dict], arm: str) -> str:
    """What the search found for an arm."""
    mine = [row for row in rows if row["seed"] == SEARCH_SEED and row["arm"] == arm]
    return f"- {arm}: " + ", ".join(f"{row['points'][-1]['accuracy']:.3f} at {row['rate']:g}" for row in mine)


def early_text(rows: list[dict]) -> str:
    """The comparison of speed as a sentence."""
    grpo, distilled = (
        " and ".join(f"{fmean(at(rows, EARLY, arm, step)):.3f}" for step in (STEPS[0], EARLY_STEP))
        for arm in EARLY_ARMS
    )
    difference = difference_text(against_grpo(rows, EARLY, "distillation", EARLY_STEP))
    return (
        f"GRPO reached {grpo} after {STEPS[0]} and\n{EARLY_STEP} steps, and distillation {distilled}: after "
        f"{EARLY_STEP} steps, {difference}"
    )


def own_text(rows: list[dict]) -> str:
    """What self-distillation reached, as a paragraph; nothing before it was measured."""
    if not at(rows, "good", OWN, STEPS[-1]):
        return ""
    by_seed = zip(*(at(rows, "good", OWN, step) for step in STEPS), strict=True)
    reached = "; ".join(", ".join(f"{rate:.3f}" for rate in rates) for rates in by_seed)
    return f"""**Self-distillation.** In `{OWN}`, TRL's experimental `SDPOTrainer` with its defaults, the student is its
own teacher, which also reads a correct completion of the same group. It has the rate of GRPO; no other was tried.
Accuracy on addition after {", ".join(map(str, STEPS))} steps, with one seed after the other: {reached}.
"""


def greedily(rows: list[dict], case: str) -> str:
    """Of a case, the greedy accuracy of the teacher and of each student with each seed."""
    seeds = NEW_SEEDS if case == "new task" else SEEDS
    of = [row for row in rows if row["case"] == case and row["seed"] in seeds]
    of += [
        row for row in rows if (row["case"], row["arm"]) == ("good", "GRPO") and case == "weak" and row["seed"] in seeds
    ]
    teachers = {row["seed"]: row["teacher"]["greedy"] for row in of if "teacher" in row}
    best = {arm: best_rate(rows, arm) for arm in ARMS[:3]}
    found = {"the teacher": [teachers[seed] for seed in seeds]}
    for arm in dict.fromkeys(("GRPO", *MEASURED[case])):
        found[arm] = [row["greedy"] for row in of if row["arm"] == arm and row["rate"] == best.get(arm, row["rate"])]
    said = "; ".join(f"{who} {', '.join(f'{one:.3f}' for one in values)}" for who, values in found.items())
    return f"- {TITLES[case]}: {said}"


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    rows = stored["rows"]
    correct = [row["correct"] for row in rows if (row["case"], row["arm"]) == ("weak", "filtered SFT")]
    text = filled(
        "distill",
        where=provenance(stored),
        last=STEPS[-1],
        batch=BATCH,
        samples=BATCH * STEPS[-1],
        least=min(correct),
        most=max(correct),
        weak_steps=WEAK_STEPS,
        good_steps=GOOD_STEPS,
        larger_steps=LARGER_STEPS,
        worked=WORKED,
        prompts=PROMPTS,
        seeds=len(SEEDS),
        new_seeds=len(NEW_SEEDS),
        tables="\n".join(table(rows, case) for case in CASES),
        greedily="\n".join(greedily(rows, case) for case in CASES),
        early_rate=EARLY_RATE,
        early=early_text(rows),
        own=own_text(rows),
        rates=", ".join(f"{rate:g}" for rate in RATES),
        search_steps=SEARCH_STEPS[0],
        search_seed=SEARCH_SEED,
        searched="\n".join(tried(rows, arm) for arm in ARMS[:3]),
    )
    return f"\n{text}"


def measure() -> None:
    """First the search for the rates, then every case."""
    searched = [dict(case="good", arm=arm, seed=SEARCH_SEED, rate=rate) for arm in ARMS[:3] for rate in RATES]
    rows = train_missing(STORED, searched, train)["rows"]
    runs = [
        dict(case=case, arm=arm, seed=seed, rate=best_rate(rows, arm))
        for seed in SEEDS
        for case, arms in MEASURED.items()
        for arm in arms
        if case != "new task" or seed in NEW_SEEDS
    ]
    runs += [dict(case="good", arm=OWN, seed=seed, rate=best_rate(rows, "GRPO")) for seed in OWN_SEEDS]
    runs += [dict(case=EARLY, arm=arm, seed=seed, rate=EARLY_RATE) for seed in SEEDS for arm in EARLY_ARMS]
    train_missing(STORED, runs, train)


if __name__ == "__main__":
    write_section(__doc__, STORED, TITLE, section, measure)
