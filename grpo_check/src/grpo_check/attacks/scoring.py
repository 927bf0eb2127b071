"""Call the reward, and remember everything that it paid."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from grpo_core.errors import CourseError
from grpo_core.rewards import reward_name

from ..probes.calling import LONGEST_CALL, Outcome, call, reads_group
from ..probes.matrix import NO_ANSWER, Case
from ..probes.trying.trial import SAME
from .task import Task

#: Where a completion comes from, in the order in which an attack tries them.
FIXED, FIRST, TRAINED, VARIED, HONEST = (
    "a fixed text of probe",
    "sampled before training on the reward",
    "written by the trained policy",
    "a variation of a well-paid completion",
    "reference",
)

#: Completions that are scored in one call, however slow the reward is: those of a step of training.
_COMPLETIONS_AT_LEAST = 8


@dataclass(frozen=True)
class Paid:
    """One completion and what it was paid.

    Attributes:
        row: the number of its row, and ``text`` the completion.
        correct: None if that is not known.
        source: where it comes from.
        step: the training step that sampled it.
        batch: the call in which it was scored; scores of a reward that reads the group compare only inside one.
        what: how a variation or a text of `probe` was made.
    """

    row: int
    text: str
    score: float
    correct: bool | None
    source: str
    step: int = 0
    batch: int = 0
    what: str = ""


@dataclass
class Scorer:
    """A reward, the task, and all that was paid so far.

    Attributes:
        relative: whether the reward compares the completions of a group.
        reads_answer: whether its scores depend on the gold answer, as far as there is one.
        failures: how it failed, with the completion.
        batches: how often it was called, and ``at_once`` for how many completions at most.
        hangs: whether it did not finish on some completion. It is not called again after that.
        trouble: why the attack ended early, if the user's definition of correctness failed.
    """

    reward: Callable
    task: Task
    relative: bool = False
    reads_answer: bool = True
    paid: list[Paid] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    batches: int = 0
    at_once: int = 1000
    hangs: bool = False
    trouble: str = ""

    @property
    def name(self) -> str:
        """The reward's name."""
        return reward_name(self.reward)

    def score(
        self, pairs: Sequence[tuple[int, str]], source: str, *, step: int = 0, ids: Sequence = (),
        what: Sequence[str] = (), known: Sequence[bool | None] = (),
    ) -> list[float | None]:  # fmt: skip
        """Score completions, given with the numbers of their rows, and remember the scores.

        Args:
            ids: their token ids, where a model wrote them.
            what: how each was made.
            known: whether they are correct, where that is not for the task to say.
        """
        size, scores = len(pairs) if self.relative else self.at_once, []
        for start in range(0, len(pairs), size or 1):
            part = slice(start, start + size)
            scores += self._score(pairs[part], source, step, ids[part], what[part], known[part])
        return scores

    def _score(
        self, pairs: Sequence[tuple[int, str]], source: str, step: int, ids: Sequence, what: Sequence, known: Sequence
    ) -> list[float | None]:
        """Score completions in one call."""
        cases = [self.case(number, text) for number, text in pairs]
        if ids:
            cases = [
                case._replace(columns={**case.columns, "completion_ids": one})
                for case, one in zip(cases, ids, strict=True)
            ]
        scores = [None] * len(cases) if self.hangs else self._finite(cases, self._call(cases))
        known = known or [self.task.correct(text, number) for number, text in pairs]
        self.batches += 1
        for pair, score, right, how in zip(pairs, scores, known, what or [""] * len(pairs), strict=True):
            if score is not None:
                self.paid.append(Paid(*pair, score, right, source, step, self.batches, how))
        return scores

    def case(self, number: int, text: str) -> Case:
        """A completion of a row as `probe` calls rewards with it."""
        return Case("", "", text, number, self.task.rows[number])

    def _call(self, cases: Sequence[Case]) -> Outcome:
        """What the reward returns; a completion alone is given twice, because a group has at least two."""
        outcome = call(self.reward, cases if len(cases) > 1 else [*cases] * 2, self.task.chat)
        if outcome.scores is not None:
            outcome.scores = outcome.scores[: len(cases)]
        return outcome

    def _finite(self, cases: Sequence[Case], outcome: Outcome) -> list[float | None]:
        """The scores; None where the reward failed, which is noted."""
        if outcome.scores is None and (len(cases) == 1 or outcome.code in ("slow", "stuck", "wrong_length")):
            self.failures.append((outcome.error, cases[0].text))
            self.hangs |= outcome.code in ("slow", "stuck")
            return [None] * len(cases)
        if outcome.scores is None:
            return [self._finite([one], self._call([one]))[0] for one in cases]
        for one, score in zip(cases, outcome.scores, strict=True):
            if score is not None and not math.isfinite(score):
                self.failures.append((f"the score is {score}", one.text))
        return [score if score is not None and math.isfinite(score) else None for score in outcome.scores]


def check_reward(scorer: Scorer) -> None:
    """Try the reward on a few texts before anything slow, and see whether it compares the completions of a group.

    Raises:
        CourseError: it fails, does not end, or is random.
    """
    task, rows = scorer.task, range(min(4, len(scorer.task.rows)))
    texts = [(n, text) for n in rows for text in (task.golds[n] or "yes", NO_ANSWER, f"{task.question(n)} 7 of 9")]
    cases = [scorer.case(*pair) for pair in texts]
    first, started = _scores(scorer, cases), time.perf_counter()
    again = _scores(scorer, cases)
    each = (time.perf_counter() - started) / len(cases)
    scorer.at_once = max(_COMPLETIONS_AT_LEAST, int(LONGEST_CALL / 4 / max(each, 1e-4)))
    again = again if _same(first, again) else _scores(scorer, cases)  # a cache settles after the first call
    if not _same(again, _scores(scorer, cases)):
        raise CourseError(
            f"{scorer.name} is random: the same batch of completions is scored differently each time, so a policy "
            "would be trained on noise. Remove the randomness."
        )
    alone = [_scores(scorer, [case, case])[0] for case in cases[:3]]
    scorer.relative = reads_group(scorer.reward) or not _same(alone, again[:3])


def _scores(scorer: Scorer, cases: Sequence[Case]) -> list[float | None]:
    outcome = call(scorer.reward, cases, scorer.task.chat)
    if outcome.code in ("slow", "stuck"):
        raise CourseError(f"{scorer.name} did not score {len(cases)} short texts within {LONGEST_CALL:g} seconds.")
    bad = [s for s in outcome.scores or [] if s is not None and not math.isfinite(s)]
    if outcome.error or bad:
        what = outcome.error or f"the score is {bad[0]}"
        hint = f"grpo-check probe FILE.py:{scorer.name} shows on which completions"
        raise CourseError(f"{scorer.name} fails on short plain texts: {what}. Training would stop; {hint}.")
    return outcome.scores


def _same(one: list[float | None], other: list[float | None]) -> bool:
    """Whether two lists of scores are equal but for rounding."""
    most = max([abs(score) for score in one if score] or [0.0])
    return all(
        a is b or (a is not None and b is not None and abs(a - b) <= SAME * most)
        for a, b in zip(one, other, strict=True)
    )
