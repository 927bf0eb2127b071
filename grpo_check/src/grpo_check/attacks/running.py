"""The whole attack from top to bottom."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from statistics import median

from grpo_core import smollm2
from grpo_core.errors import CourseError
from grpo_core.rewards import reward_name

from ..findings import Finding, in_order
from ..packages import OF_A_MODEL, require
from ..probes.calling import parts_of
from ..probes.forms import Form
from ..probes.matrix import Case, cases
from ..probes.trying.choosing import depends_on_answer
from ..probes.trying.planning import Plan, rewards_of
from ..probes.trying.trial import ROUNDING, Trial
from ..replay.page import write_replay
from ..replay.read import read_run
from .history import ends_of
from .honest import pay_of, score_corrected, score_references
from .report import AttackReport
from .rules import RULES
from .scoring import FIXED, VARIED, Paid, Scorer, check_reward
from .task import read_task
from .training import TRUTH, train
from .variations import variations

#: What a report says if the known correct completions are paid nothing.
UNPAID = (
    "None of the correct completions that are known earns more than the lowest score. If your reward asks for a form "
    "of its own, show one with --example, or pass --correct."
)
#: What trains the model; `probe` does without.
#: The file in a folder that tells that an attack made it.
MARK = "attack.txt"
#: Rows for its texts; longer ones are left out.
FIXED_ROWS, LONGEST_TEXT = 6, 5_000
#: How often the best-paid completions are varied, how many of them, on how many rows each, and for how many seconds.
ROUNDS, VARIED_TEXTS, ROWS_EACH, SECONDS = 2, 8, 4, 60.0


def attack(
    rewards: Callable | Sequence[Callable], rows: Sequence[dict], *, correct: Callable | None = None,
    answer_column: str = "answer", weights: Sequence[float] | None = None, examples: Sequence[str] = (),
    model: str | None = None, minutes: float = 5.0, seed: int = 0, output_dir: str | Path = "outputs/attack",
) -> AttackReport:  # fmt: skip
    """Train a small model against a reward for some minutes, and show what the reward really paid for.

    Ctrl-C ends the training; the report has what there is by then.

    Args:
        rewards: one reward, or several, whose weighted sum is attacked.
        rows: dataset rows with a ``prompt`` and the columns that the reward needs.
        correct: ``correct(text, row)`` says whether a completion is correct. Without it, the final answer is compared
            with the gold answer; without those, nothing is known about correctness.
        answer_column: the name of the column with the gold answers.
        weights: one per reward; 1.0 each by default.
        examples: your own correct completions, where its formats are not what the reward asks for.
        model: a folder or a hub id; by default SmolLM2-135M-Instruct.
        minutes: of training; loading the model and scoring come on top.
        seed: of the rows, the model's adapter and the sampling.
        output_dir: for the log, the completions and the replay of the training.

    Raises:
        CourseError: something with which the attack cannot start.
    """
    if not minutes > 0:
        raise CourseError(f"minutes={minutes} should be above 0.")
    require("attack", OF_A_MODEL)
    folder = _checked_folder(Path(output_dir))
    reward = rewards_of(rewards, weights)[-1]
    scorer = Scorer(reward, read_task(reward, rows, answer_column, correct, seed))
    check_reward(scorer)
    if model is None:
        smollm2.check_memory()
        with redirect_stdout(sys.stderr):  # a report in JSON has stdout for itself
            smollm2.fetch()  # without a network, fail before anything is scored
    if forms := score_references(scorer, examples):
        score_fixed(scorer, forms[0])
        if not scorer.hangs:
            scorer.reads_answer = reads_answer(reward, replace(scorer.task.plan, form=forms[0]))
    clear(folder)
    finished = scorer.hangs or train(scorer, model, folder, minutes, seed)
    print("Variations of the best-paid completions are tried, for up to a minute; Ctrl-C skips them.", file=sys.stderr)
    try:
        vary(scorer)
    except KeyboardInterrupt:
        finished = False
    except CourseError as error:
        scorer.trouble = str(error)
    return report_on(scorer, folder, finished)


def reads_answer(reward: Callable, plan: Plan) -> bool:
    """Whether the score of a reward, or of one that it sums, depends on the gold answer."""
    trials = [Trial(reward_name(one), one, plan) for one in parts_of(reward)]
    return any(depends_on_answer(trial, among_others=False) for trial in trials)


def _checked_folder(folder: Path) -> Path:
    """A folder for the run: a new or empty one, or that of an earlier attack.

    Raises:
        CourseError: it is something else, such as the folder of a training run, which must not be overwritten.
    """
    if folder.exists() and not folder.is_dir():
        raise CourseError(f"{str(folder)!r} is a file. Name a folder with --out.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise CourseError(f"{str(folder)!r} is not empty, and holds no earlier attack. Choose another --out.")
    return folder


def clear(folder: Path) -> None:
    """Mark the folder as that of an attack, and delete what an earlier attack left in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("grpo-check attack writes here, and deletes what it wrote before.\n", encoding="utf-8")
    files = [folder / name for name in ("replay.html", "trainer_state.json")]
    for old in [*folder.glob("completions/completions_*.parquet"), *files]:
        old.unlink(missing_ok=True)


def score_fixed(scorer: Scorer, form: Form) -> None:
    """Score its texts on a few rows with gold answers, in one format."""
    task = scorer.task
    for number in [n for n, gold in enumerate(task.golds) if gold][:FIXED_ROWS]:
        some = [one for one in cases(form, task.golds[number], task.golds) if one.text is not None]
        some = [one for one in some if len(one.text) <= LONGEST_TEXT]
        pairs = [(number, one.text) for one in some]
        known = [_known_of(scorer, number, one) for one in some]
        scorer.score(pairs, FIXED, what=[one.what for one in some], known=known)


def _known_of(scorer: Scorer, number: int, case: Case) -> bool | None:
    """Whether a text of `probe` is correct: by the user's definition, or by its label. Neutral ones may be either."""
    if scorer.task.defined:
        return scorer.task.correct(case.text, number)
    junk = case.role == "attack" and scorer.task.golds[number] not in case.text
    return False if junk else {"correct": True, "wrong": False}.get(case.label)


def vary(scorer: Scorer) -> None:
    """Vary the best-paid completions that are not correct, on their own rows and on others, in some rounds."""
    end, stride = time.monotonic() + SECONDS, max(len(scorer.task.rows) // ROWS_EACH, 1)
    for number in range(ROUNDS):
        best = _best_unproven(scorer)
        if number == 0:
            score_corrected(scorer, best)
        for n, one in enumerate(best):
            for step in range(ROWS_EACH):
                if time.monotonic() < end:
                    row = (one.row + step * stride) % len(scorer.task.rows)
                    _score_variations(scorer, one, best[n - 1].text, row)


def _best_unproven(scorer: Scorer) -> list[Paid]:
    """The best-paid completions that are not correct, as far as is known: half of them of the policy."""
    ranked = sorted(scorer.paid, key=lambda one: -one.score)
    by_text = {one.text: one for one in reversed(ranked) if not one.correct and len(one.text) <= LONGEST_TEXT}
    different = sorted(by_text.values(), key=lambda one: -one.score)
    own = [one for one in different if one.step][: VARIED_TEXTS // 2]
    return [*own, *(one for one in different if not one.step)][:VARIED_TEXTS]


def _score_variations(scorer: Scorer, one: Paid, other: str, row: int) -> None:
    """Score the variations of one completion on a row; beside a reference, if the reward reads the group."""
    task = scorer.task
    made = list(variations(one.text, task.question(row), other, task.golds))
    honest = [found for found in scorer.paid if found.row == row and found.correct]
    beside = max(honest, key=lambda found: found.score, default=None) if scorer.relative else None
    made += [("a correct completion", beside.text)] if beside else []
    scorer.score([(row, text) for _, text in made], VARIED, what=[what for what, _ in made])


def report_on(scorer: Scorer, folder: Path, finished: bool) -> AttackReport:
    """Judge all that was paid."""
    findings: list[Finding] = []
    for rule in RULES:
        if not {one.code for one in findings} & {*rule.unless}:
            findings += rule(scorer)
    facts = [*_facts_of(scorer), *([] if finished else ["The attack was interrupted."])]
    facts += [f"The attack ended early, because {scorer.trouble}"] if scorer.trouble else []
    return AttackReport(
        in_order(findings),
        facts=tuple(facts),
        paid=tuple(scorer.paid),
        rows=tuple(scorer.task.rows),
        page=replay_of(folder, scorer),
    )


def _facts_of(scorer: Scorer) -> list[str]:
    """What was done and what happened."""
    task, ends, pay = scorer.task, ends_of(scorer.paid), pay_of(scorer.paid, scorer.relative)
    how = "by your correct()" if task.defined else "by the gold answers" if task.judges else "not known"
    sampled = [one.step for one in scorer.paid if one.step]
    steps = len({*sampled})
    facts = [
        f"{scorer.name}: {len(scorer.paid)} completions of {len(task.rows)} rows were scored. The model wrote "
        f"{len(sampled)} of them, in {steps} step{'s' if steps != 1 else ''} of training. Correctness: {how}."
    ]
    if pay and not scorer.relative:
        known = {one.row for one in scorer.paid if one.correct}
        facts.append(f"{_honest_pay([pay[row].plain for row in sorted(known)], len(task.rows))}.")
    if pay and all(one.plain <= one.floor + ROUNDING for one in pay.values()):
        facts.append(UNPAID)
    if len({one.score for one in scorer.paid}) == 1:
        facts.append(f"Every completion was paid {scorer.paid[0].score:g}, also those with the gold answer.")
    return [*facts, *([f"{str(ends).capitalize()}."] if ends else [])]


def _honest_pay(each: Sequence[float], rows: int) -> str:
    """What a correct completion earns, from the most that is known of each row on which one is known.

    >>> _honest_pay([1.0, 1.0], 2), _honest_pay([0.5, 1.0, 1.5], 3)
    ('A correct completion earns 1 on every row', 'A correct completion earns 0.5 to 1.5 (median of the rows: 1)')
    >>> _honest_pay([1.0, 1.0], 9)
    'A correct completion is known on 2 of 9 rows, and earns 1 there; on the other rows, it is assumed to earn as much'
    """
    low, middle, high = (f"{number:.3g}" for number in (min(each), median(each), max(each)))
    earns = low if low == high else f"{low} to {high} (median of the rows: {middle})"
    if len(each) == rows:
        return f"A correct completion earns {earns}{' on every row' if low == high else ''}"
    known = f"A correct completion is known on {len(each)} of {rows} rows, and earns {earns} there"
    return f"{known}; on the other rows, it is assumed to earn {'as much' if low == high else 'the median'}"


def replay_of(folder: Path, scorer: Scorer) -> str | None:
    """Write the replay of the training, if there was a step."""
    if not any(folder.glob("completions/completions_*.parquet")):
        return None
    page = folder / "replay.html"
    write_replay(read_run(folder, correctness=[TRUTH] if scorer.task.judges else []), page)
    return str(page)
