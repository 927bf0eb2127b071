"""Judge all rewards of a probe."""

from dataclasses import replace

from ...findings import Finding, in_order
from ..calling import parts_of
from ..changes import KINDS
from ..loading import how_loaded
from ..report import ProbeReport, Verdict
from ..trying.trial import OBSERVED, ROUNDING, STOPPING, Trial
from .counts import overpaid, underpaid
from .rules import RULES

#: Where the example of the user is the only completion that is paid well.
_ONLY_EXAMPLE = "of what was tried, only your example is paid the most"
#: Rules that compare the scores of several batches, which a reward that is relative to its batch does not keep.
ACROSS_BATCHES = ("farmable", "length_farm")
#: Findings about the user's example, which concern the sum of several rewards.
ONCE = {"pays_changed_example", "word_salad"}
#: Findings that are a fact about the reward, which the first line tells in half a sentence.
FACTS = ("chat_only", "string_only", "untagged")


def judge(trials: list[Trial]) -> ProbeReport:
    """Judge each reward. The sum comes first, because partial credit needs one that tells right from wrong."""
    *parts, last = trials
    of_last = _findings(last)
    for trial in parts:
        trial.partial = last.answered and not {"wrong_beats_right", *STOPPING} & {one.code for one in of_last}
    findings = {trial.name: _findings(trial) for trial in parts} | {last.name: of_last}
    said = ONCE & {one.code for one in of_last}
    for trial in parts:
        findings[trial.name] = [one for one in findings[trial.name] if one.code not in said]
    return ProbeReport(
        in_order(one for some in findings.values() for one in some),
        scored=tuple(record for trial in trials for record in _records(trial)),
        verdicts={trial.name: _verdict(trial, findings[trial.name]) for trial in trials},
        printed=tuple(line for trial in trials for line in trial.logs),
    )


def _findings(trial: Trial) -> list[Finding]:
    """Apply the rules; where nothing else can be tested, only those that say why."""
    findings: list[Finding] = []
    relative = bool(trial.observed["order_dependent"] or trial.observed["mixes_groups"])
    for rule in RULES:
        able = rule.code in OBSERVED if trial.not_judged else rule.code in STOPPING or not trial.stopped
        able = able and not (relative and rule.code in ACROSS_BATCHES)
        if able and not {one.code for one in findings} & {*rule.unless}:
            findings += rule(trial)[: rule.most]
    wrong_kind = "string_only" if _given_as_messages(trial) else ""  # then the run would stop, or learn nothing
    findings = [replace(one, severity="error") if one.code == wrong_kind else one for one in findings]
    return [replace(one, subject=trial.name) for one in findings]


def _given_as_messages(trial: Trial) -> bool:
    """Whether the prompts that were given are lists of messages, so that completions will be, too."""
    return any(isinstance(row.get("prompt"), list) for row in trial.plan.columns)


def _records(trial: Trial) -> list[dict]:
    """The score matrix of one reward."""
    return [
        {"reward": trial.name, "gold": trial.plan.golds[case.number] if trial.answered else "", "what": case.what}
        | {"label": case.label, "completion": case.text, "score": score}
        for case, score in trial.scored
    ]


def _verdict(trial: Trial, findings: list[Finding]) -> Verdict:
    """How one reward was tried, and what that shows."""
    plan, facts = trial.plan, [one.what.rstrip(".") for one in findings if one.code in FACTS]
    facts = [how for part in parts_of(trial.reward) if (how := how_loaded(part))] + facts
    if trial.not_judged:
        return Verdict("not judged", not_judged=trial.not_judged)
    if trial.stopped:
        why = "chance decides" if trial.observed["random"] else "the scoring of one completion never finished"
        return Verdict(f"not judged further, because {why}")
    facts += ["it scores the length alone"] if trial.length_alone else []
    facts += _facts_of_pay(trial)
    facts += ["it reads the gold answers as numbers"] if plan.numbers else []
    golds = ", ".join(map(_short, plan.golds[:4])) + (", …" if len(plan.golds) > 4 else "")
    unread = "" if plan.own_golds else ", because it reads none of the answers"
    how = f"judged by the answer ({golds})" if trial.answered else f"judged by its format alone{unread}"
    kind = "chat messages" if plan.chat else "strings"
    form = f"any format, such as {plan.form}" if plan.any_form else f"format {plan.form}"
    form = "the format of your example" if _ONLY_EXAMPLE in facts else form
    rest = f" ({'; '.join(facts)})" if facts else ""
    counts, little = (underpaid(trial), overpaid(trial)), _ONLY_EXAMPLE in facts
    how = f"{how}, {len(trial.scored)} completions as {kind}, {form}{rest}"
    return Verdict(how, trial.answered, counts, little_tried=little)


def _facts_of_pay(trial: Trial) -> list[str]:
    """What a reader should know of what is paid most: an empty text, or the given example and its changes alone."""
    scores = [(case, score) for case, score in trial.scored if score is not None]
    most = max((score for _, score in scores), default=0.0)
    best = [case for case, score in scores if score >= most - ROUNDING]
    ids = {case.id for case in best}
    if trial.all_equal or not ids:
        return []
    only = [_ONLY_EXAMPLE] if ids <= {"example", "salad", *KINDS} else []
    changed = list(dict.fromkeys(case.what for case in best if case.id in KINDS))[:2]
    also = [f"it is paid as much with {' or '.join(changed)}"] if only and changed else []
    return [*only, *also, *(["an empty text is paid the most"] if "empty" in ids else [])]


def _short(gold: str) -> str:
    """A gold answer on one line."""
    line = gold.replace("\n", "⏎")
    return line if len(line) <= 40 else f"{line[:30]}…{line[-8:]}"
