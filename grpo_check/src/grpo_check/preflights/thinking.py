"""Check whether the prompt already opens, or opens and closes, a thinking tag.

The templates of DeepSeek-R1's distilled models and of Qwen3.5 from 4B end each prompt with ``<think>``, so the
completion contains only ``</think>``. The templates of Qwen3 with ``enable_thinking=False``, and of Qwen3.5 below 4B
by default, end it with ``<think></think>``, so the completion contains neither. A reward that needs both tags in the
completion then scores every completion 0.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from grpo_core.rewards import reward_name

from ..findings import Finding
from ..probes.calling import LONGEST_CALL, call
from ..probes.forms import FORMS, read_tags
from ..probes.limits import OutOfTimeError
from ..probes.matrix import Case
from ..rule import Rule, adding_to, found
from .planned import PlannedRun, once
from .rewards import first_row, why_untried
from .rows import column, spread
from .texts import UNRENDERED, render, why_unrendered

#: Prompts whose end is looked at; a system prompt may turn thinking on or off.
_MOST_ENDS = 16
#: What is put after a message to find where the template goes on. No template writes it.
MARK = "\u2063the message ends here\u2063"
#: A tag that opens: ``<think>``, ``[THINK]``, ``◁think▷``.
TAG = re.compile(r"<([A-Za-z][\w:-]{0,40})>|\[([A-Za-z][\w:-]{0,40})\]|◁([A-Za-z][\w:-]{0,40})▷")
#: Parts of the names that tags around reasoning have.
_REASONING_NAMES = ("think", "thought", "reason", "working", "scratch", "analy", "reflect")
#: Tags whose partner is not the same name with a slash.
_PARTNERS = {form[0].strip(): form[1].strip() for form in FORMS if form[0].strip()}
#: Tokens below which most thoughts of a real model are cut off. A model card reports a mean of 1,399 for thought and
#: answer together (Qwen3-1.7B on GSM8K, in QThink-Qwen3-1.7B-GSM8k); Qwen recommends room for 32,768.
_THOUGHT_TOKENS = 1024
THOUGHT = "15 + 27 is what is asked for, and I add it up."
#: Chat templates for the examples: one opens a thought as DeepSeek-R1's does, one closes it as Qwen3's does.
TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
_OPENS_THOUGHT = TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n[THINK]{% endif %}"
_CLOSES_THOUGHT = TURNS + (
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def _both_tags(completions: list, **kwargs: object) -> list[float]:
    """A reward of the examples that needs both tags in the completion."""
    texts = [one[0]["content"] or "" for one in completions]
    return [float("[THINK]" in text and "[/THINK]" in text) for text in texts]


class _Opened(NamedTuple):
    """A tag that the prompt opens for the model, its partner, and whether the prompt closes it as well."""

    tag: str
    partner: str
    closed: bool


class Paid(NamedTuple):
    """Which completions score more than an empty one, by how they begin."""

    whole: bool  # both tags in the completion
    rest: bool  # only what is left to write after the prompt's end
    less: bool  # the rest, but less than the whole; or an answer in another form, but not after the end of thinking

    @property
    def needs_both(self) -> bool:
        """Whether the reward scores only completions with both tags."""
        return self.whole and not self.rest


RULES: list[Rule] = []
rule = adding_to(RULES, needs=("tokenizer",))


@rule(
    "error",
    "the prompt already has a tag that a reward expects in the completion (a warning if no reward surely does)",
    why="a reward that needs both tags in the completion scores every completion 0.",
    fixes=(
        "use a reward that accepts completions with and without the first tag.",
        "set enable_thinking in chat_template_kwargs as your rewards need it.",
    ),
    unless=UNRENDERED,
    example={"tokenizer": {"chat_template": _OPENS_THOUGHT}, "rewards": [_both_tags], "try_rewards": True},
)
def prefilled_think(run: PlannedRun) -> Iterator[Finding]:
    """It renders some prompts and, if they end with a thinking tag, tries the rewards on completions that fit them."""
    yield from (one for _, one in _prefilled(run) if one)


def notes(run: PlannedRun) -> Iterator[str]:
    """Thinking tags at the end of the prompt that no reward minds."""
    for note, finding in _prefilled(run) if not why_unrendered(run) else []:
        if not finding:
            yield note


@once
def _prefilled(run: PlannedRun) -> list[tuple[str, Finding | None]]:
    """For each thinking tag with which prompts end: a sentence about it, and the finding if a reward minds."""
    prompts, judged = _first_prompts(run), []
    ends = [opened(run, prompt) for prompt in prompts]
    for end in dict.fromkeys(filter(None, ends)):
        prompt, many = prompts[ends.index(end)], ends.count(end)
        share = "" if many == len(prompts) else f" ({many} of the {len(prompts)} prompts checked)"
        said = f"the prompt ends with {end.tag!r}{f' and {end.partner!r}' if end.closed else ''}{share}"
        paid, untried = _tried(run, end)
        finding = _closed(run, prompt, said, end, paid) if end.closed else _open(run, prompt, said, end, paid, untried)
        held = "neither tag" if end.closed else f"only {end.partner!r}"
        judged.append((f"{said}, so completions contain {held}", finding))
    return judged


def _tried(run: PlannedRun, end: _Opened) -> tuple[list[tuple[str, Paid]], str]:
    """What each reward pays for, by name; or nothing, and why the rewards could not be tried."""
    untried = why_untried(run)
    try:
        return [] if untried else [(reward_name(one), _paid(run, one, end)) for one in _trained_on(run)], untried
    except OutOfTimeError:
        return [], f"one of them took over {LONGEST_CALL:g} s"


def opened(run: PlannedRun, prompt: "str | list[dict]", **changed: object) -> _Opened | None:
    """The reasoning tag with which what the model reads of a prompt ends, or None.

    Args:
        run: the tokenizer, its template's arguments and the requested form.
        prompt: text, or messages.
        changed: arguments of the chat template, such as ``enable_thinking``, in place of the run's.
    """
    end = _text_end(run, prompt) if isinstance(prompt, str) else _chat_end(run, prompt, changed)
    tags = list(TAG.finditer(end))
    if not tags or not _is_reasoning(run, prompt, tags[-1][0]):
        return None
    tag, rest = tags[-1][0], end[tags[-1].end() :]
    partner = _PARTNERS.get(tag) or (f"<end_{tag[7:]}" if tag.startswith("<start_") else f"{tag[0]}/{tag[1:]}")
    return _Opened(tag, partner, partner in rest)


@rule(
    "warning",
    "thinking is on, and the completion limit ends most thoughts before the answer",
    why="a real model's thought often takes more than 1,000 tokens, and a completion that is cut off has no answer.",
    fixes=(
        "turn thinking off, in training and in evaluation: chat_template_kwargs={'enable_thinking': False}.",
        f"raise max_completion_length to {2 * _THOUGHT_TOKENS} or more, or let the pilot measure how many end.",
    ),
    unless=UNRENDERED,
    example={"tokenizer": {"chat_template": _CLOSES_THOUGHT}},
)
def short_thoughts(run: PlannedRun) -> Iterator[Finding]:
    """It looks at the chat template: whether it opens a thought, or closes one only with enable_thinking=False."""
    limit, prompts = run["max_completion_length"], _first_prompts(run)
    if limit >= _THOUGHT_TOKENS or not any(thinks(run, prompt) for prompt in prompts):
        return
    what = f"thinking is on, and max_completion_length is {limit}."
    stays_on = any(thinks(run, prompt, enable_thinking=False) for prompt in prompts)
    yield found(what, *short_thoughts.fixes[stays_on:])


def thinks(run: PlannedRun, prompt: "str | list[dict]", **changed: object) -> bool:
    """Whether the model starts with a thought: the template opens one, or only ``enable_thinking=False`` closes it.

    Qwen3's template writes nothing while thinking is on, and ``<think></think>`` while it is off.
    """
    end = opened(run, prompt, **changed)
    if end:
        return not end.closed and "think" in end.tag.lower()
    without = opened(run, prompt, **{**changed, "enable_thinking": False})
    return without is not None and without.closed


def _first_prompts(run: PlannedRun) -> list["str | list[dict]"]:
    """Prompts of the dataset, spread over its rows; without a dataset, one that stands for them."""
    if not run.train:
        return [[{"role": "user", "content": "What is 15 + 27?"}]]
    return [one for one in column(run.train, "prompt", spread(run.train, _MOST_ENDS)) if one]


def _is_reasoning(run: PlannedRun, prompt: "str | list[dict]", tag: str) -> bool:
    """Whether a tag is there for reasoning: by its name, or as it is asked for; ``<start_of_turn>`` is not."""
    asked = "" if isinstance(prompt, str) else " ".join(str(turn.get("content")) for turn in prompt)
    return any(part in tag.lower() for part in _REASONING_NAMES) or tag in asked or tag in "".join(run.tags or ())


def _text_end(run: PlannedRun, prompt: str) -> str:
    """The end of a text that TRL puts into no template: after the last special token, or a tag at the very end."""
    special = [token for token in run.tokenizer.all_special_tokens if not TAG.fullmatch(token)]
    places = [prompt.rfind(token) + len(token) for token in special if token in prompt]
    if places:
        return prompt[max(places) :]
    return next((m[0] for m in TAG.finditer(prompt) if not prompt[m.end() :].strip()), "")


def _chat_end(run: PlannedRun, prompt: list[dict], changed: dict) -> str:
    """What the chat template writes after the last message, up to where the completion starts; "" if it fails."""
    whole, _ = render(run, prompt, add_generation_prompt=True, **changed)
    last = prompt[-1]
    if isinstance(last.get("content"), str):
        marked = [*prompt[:-1], {**last, "content": last["content"] + MARK}]
        end = render(run, marked, add_generation_prompt=True, **changed)[0].rpartition(MARK)[2]
        if end and whole.endswith(end):
            return end
    without, _ = render(run, prompt, **changed)
    return whole.removeprefix(without) if without else ""


def _trained_on(run: PlannedRun) -> list[Callable]:
    """The rewards that the policy trains on; those of weight 0 are only logged."""
    weights = run["reward_weights"]
    if not isinstance(weights, (list, tuple)) or len(weights) != len(run.rewards):
        return run.functions
    return [r for r, weight in zip(run.rewards, weights, strict=True) if weight and r in run.functions]


def _completions(run: PlannedRun, end: _Opened, gold: object) -> dict[str, list[str]]:
    """Completions with thinking, in every common answer format, by what they begin with or lack."""
    forms = [*([read_tags(run.tags)] if run.tags is not None else []), *FORMS]
    answers = dict.fromkeys(f"{form.before_answer}{gold}{form.after_answer}" for form in forms)
    gaps = [(gap, answer) for gap in ("", "\n", "\n\n") for answer in answers]
    whole = [f"{end.tag}{gap[:1]}{THOUGHT}{gap[:1]}{end.partner}{gap}{answer}" for gap, answer in gaps]
    others = [form.write(THOUGHT, str(gold)) for form in forms if end.tag not in form.before_reasoning]
    return {
        "nothing": ["", "I do not know."],  # what a reward gives them, it gives for no answer
        "whole": whole,
        "rest": list(answers) if end.closed else [text[len(end.tag) :].lstrip() for text in whole],
        "others": others,
        "others after the end": others if end.closed else [f"{THOUGHT}{end.partner}\n{text}" for text in others],
    }


def _paid(run: PlannedRun, reward: Callable, end: _Opened) -> Paid:
    """Which completions with thinking a reward scores above those that answer nothing."""
    gold, columns = first_row(run)
    kinds = _completions(run, end, gold[0] if isinstance(gold, list) and gold else gold)
    texts = [*dict.fromkeys(text for some in kinds.values() for text in some)]
    outcome = call(reward, [Case("thinking", "odd", text, columns=columns) for text in texts], run.chat)
    if outcome.code in ("slow", "stuck"):
        raise OutOfTimeError
    scored = zip(texts, outcome.scores or [], strict=False)
    known = {text: score for text, score in scored if score is not None and score == score}
    best = {kind: max(known.get(text, -math.inf) for text in some) for kind, some in kinds.items()}
    pays = {kind for kind, score in best.items() if score > best["nothing"]}
    rest = bool(pays & {"rest", "others after the end"})
    less = "rest" in pays and best["rest"] < best["whole"]
    return Paid("whole" in pays, rest, less or ("others" in pays and not rest))


def _open(
    run: PlannedRun, prompt: "str | list[dict]", said: str, end: _Opened, paid: list[tuple[str, Paid]], untried: str
) -> Finding | None:
    """The finding where the prompt opens a tag and leaves it open."""
    strict = [name for name, one in paid if one.needs_both]
    weak = [name for name, one in paid if one.less]
    why = f"a reward that needs both tags would score 0. This could not be checked for your rewards ({untried})."
    if strict:
        why = f"{' and '.join(strict)} scores only completions with both tags, and this run produces none."
    elif weak:
        why = f"{' and '.join(weak)} scores completions that start inside the thinking lower, or 0."
    elif any(one.rest for _, one in paid):
        return None
    elif not untried:
        why = "a reward that needs both tags would score 0. Your rewards gave 0 in every format that was tried."
    what = f"{said}, so a completion contains {end.partner!r} but not {end.tag!r}."
    fixes = _ways_out(run, prompt, end)
    return found(what, *fixes, why=why, severity="error" if strict else "warning")


def _closed(
    run: PlannedRun, prompt: "str | list[dict]", said: str, end: _Opened, paid: list[tuple[str, Paid]]
) -> Finding | None:
    """The finding where the prompt opens and closes a tag, and a reward needs it in the completion."""
    strict = " and ".join(name for name, one in paid if one.needs_both)
    if not strict:
        return None
    why = f"{strict} scores only completions with {end.partner!r}, but thinking is off."
    fixes = [f"replace {strict} with rewards that do not require thinking."]
    if not isinstance(prompt, str) and opened(run, prompt, enable_thinking=True) != end:
        fixes.insert(0, "set enable_thinking=True in chat_template_kwargs if the model should think.")
    return found(f"{said}, so a completion contains neither.", *fixes, why=why)


def _ways_out(run: PlannedRun, prompt: "str | list[dict]", end: _Opened) -> list[str]:
    """The fixes; the first one keeps the thinking."""
    optional = f"in a regular expression: ({end.tag})?"
    ways = [f"use a reward that accepts completions with and without the first {end.tag!r} ({optional})."]
    if isinstance(prompt, str):
        return [*ways, f"remove {end.tag!r} from the end of the prompts."]
    if opened(run, prompt, enable_thinking=False) != end:
        ways.append("set chat_template_kwargs={'enable_thinking': False} and use no reward for thinking.")
    return [*ways, f"use a chat template that does not end the generation prompt with {end.tag!r}."]
