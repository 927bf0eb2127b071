"""Check what the prompt has written of the thinking already: a tag opened for the model, or closed again.

The templates of DeepSeek-R1's distilled models and of Qwen3.5 end each prompt with ``<think>``, so the completion holds
``</think>`` alone; with ``enable_thinking=False`` Qwen3's ends it with ``<think></think>``, so the completion holds
neither. A reward that wants both tags in the completion then pays nothing, to anybody, in any step.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from grpo_utils.rewards import reward_name

from ..reward_lab.calling import call
from ..reward_lab.forms import FORMS, read_tags
from ..reward_lab.matrix import Case
from .planned import Planned
from .report import Finding
from .rewards import functions, is_chat, sample
from .rows import column, first_rows
from .texts import render

#: Prompts whose end is looked at; a system prompt may turn thinking on or off.
MOST_ENDS = 16
#: What is put after a message to find where the template goes on. No template writes it.
MARK = "\u2063the message ends here\u2063"
#: A tag that opens: ``<think>``, ``[THINK]``, ``◁think▷``.
TAG = re.compile(r"<([A-Za-z][\w:-]{0,40})>|\[([A-Za-z][\w:-]{0,40})\]|◁([A-Za-z][\w:-]{0,40})▷")
#: Parts of the names that tags around reasoning have.
REASONING = ("think", "thought", "reason", "working", "scratch", "analy", "reflect")
#: Tags whose partner is not the same name with a slash.
PARTNERS = {form[0].strip(): form[1].strip() for form in FORMS if form[0].strip()}
#: Texts that are no answer: what a reward gives them is what it gives for nothing.
NOTHING = ("", "I do not know.")
THOUGHT = "15 + 27 is what is asked for, and I add it up."


class Opened(NamedTuple):
    """A tag that the prompt opens for the model, its partner, and whether the prompt closes it as well."""

    tag: str
    partner: str
    closed: bool


class Paid(NamedTuple):
    """Which completions a reward pays more than it pays for nothing, by the way they begin."""

    whole: bool  # both tags in the completion
    rest: bool  # only what is left to write after the prompt's end
    less: bool  # the rest is paid, and less than the whole
    blocked: bool  # an answer in another form is paid, and not after the end of thinking


def prefilled(run: Planned, untried: str) -> tuple[list[Finding], list[str]]:
    """A thinking tag that the prompt opens, against the rewards; findings and notes.

    Args:
        run: with a tokenizer.
        untried: why the rewards cannot be called, "" if they can.
    """
    prompts = [prompt for prompt in _prompts(run) if prompt]
    ends = [opened(run, prompt) for prompt in prompts]
    findings, notes = [], []
    for found in dict.fromkeys(end for end in ends if end):
        prompt, many = prompts[ends.index(found)], ends.count(found)
        share = "" if many == len(prompts) else f" ({many} of the {len(prompts)} prompts looked at)"
        said = f"the prompt ends with {found.tag!r}{f' and its {found.partner!r}' if found.closed else ''}{share}"
        paid = [] if untried else [(reward_name(reward), _paid(run, reward, found)) for reward in _counted(run)]
        check = _closed if found.closed else _open
        finding = check(run, prompt, said, found, paid, untried)
        findings += [finding] if finding else []
        held = "neither" if found.closed else f"{found.partner!r} alone"
        notes += [] if finding else [f"{said}: completions hold {held}."]
    return findings, notes


def _prompts(run: Planned) -> list:
    """Some training prompts, evenly spread; without rows a question as a user asks it."""
    if run.train is None or not len(run.train):
        return [[{"role": "user", "content": "What is 15 + 27?"}]]
    step = max(1, len(run.train) // MOST_ENDS)
    spread = run.train[::step] if isinstance(run.train, Sequence) else run.train.select(range(0, len(run.train), step))
    return column(first_rows(spread, MOST_ENDS), "prompt")


def opened(run: Planned, prompt: "str | list[dict]", **changed: object) -> Opened | None:
    """The reasoning tag with which what the model reads of a prompt ends, or None.

    Args:
        run: the tokenizer, its template's arguments and the asked form.
        prompt: text, or messages.
        changed: arguments of the chat template, such as ``enable_thinking``, in place of the run's.
    """
    end = _text_end(run, prompt) if isinstance(prompt, str) else _chat_end(run, prompt, changed)
    found = list(TAG.finditer(end))
    if not found:
        return None
    tag, rest = found[-1][0], end[found[-1].end() :]
    partner = PARTNERS.get(tag) or (f"<end_{tag[7:]}" if tag.startswith("<start_") else f"{tag[0]}/{tag[1:]}")
    return Opened(tag, partner, partner in rest) if _is_reasoning(run, prompt, tag) else None


def _is_reasoning(run: Planned, prompt: "str | list[dict]", tag: str) -> bool:
    """Whether a tag is there for reasoning: by its name, or as it is asked for; ``<start_of_turn>`` is not."""
    asked = "" if isinstance(prompt, str) else " ".join(str(turn.get("content")) for turn in prompt)
    return any(part in tag.lower() for part in REASONING) or tag in asked or tag in "".join(run.tags or ())


def _text_end(run: Planned, prompt: str) -> str:
    """The end of a text that TRL puts into no template: after the last special token, or a tag at the very end."""
    special = [] if run.tokenizer is None else [t for t in run.tokenizer.all_special_tokens if not TAG.fullmatch(t)]
    places = [prompt.rfind(token) + len(token) for token in special if token in prompt]
    if places:
        return prompt[max(places) :]
    return next((m[0] for m in TAG.finditer(prompt) if not prompt[m.end() :].strip()), "")


def _chat_end(run: Planned, prompt: list[dict], changed: dict) -> str:
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


def _counted(run: Planned) -> list[Callable]:
    """The rewards that are trained on: those of weight 0 are only logged."""
    weights = run["reward_weights"]
    if not isinstance(weights, list | tuple) or len(weights) != len(run.rewards):
        return functions(run)
    return [r for r, weight in zip(run.rewards, weights, strict=True) if r in functions(run) and weight]


def _paid(run: Planned, reward: Callable, found: Opened) -> Paid:
    """What a reward pays of completions that think, each in every usual form of an answer."""
    asked = [read_tags(run.tags)] if run.tags is not None else []
    gold, columns = _row(run)
    ends = dict.fromkeys((form.before_answer, form.after_answer) for form in (*asked, *FORMS))
    answers = [(gap, f"{before}{gold}{after}") for gap in ("", "\n", "\n\n") for before, after in ends]
    whole = [f"{found.tag}{gap[:1]}{THOUGHT}{gap[:1]}{found.partner}{gap}{answer}" for gap, answer in answers]
    rest = [answer for _, answer in answers] if found.closed else [text[len(found.tag) :].lstrip() for text in whole]
    others = [form.write(THOUGHT, gold) for form in (*asked, *FORMS) if found.tag not in form.before_reasoning]
    after = others if found.closed else [f"{THOUGHT}{found.partner}\n{text}" for text in others]
    scores = _scores(reward, [*NOTHING, *whole, *rest, *others, *after], columns, is_chat(run))
    cuts = [len(NOTHING), len(whole), len(rest), len(others), len(after)]
    nothing, *best = [max(scores[sum(cuts[:i]) : sum(cuts[: i + 1])]) for i in range(len(cuts))]
    pays_whole, pays_rest, pays_others, pays_after = [score > nothing for score in best]
    return Paid(
        pays_whole,
        pays_rest or pays_after,
        pays_rest and best[1] < best[0],
        pays_others and not (pays_after or pays_rest),
    )


def _row(run: Planned) -> tuple[str, dict]:
    """A gold answer, and the columns of its row."""
    answers, columns = sample(run)
    first = {name: values[0] for name, values in columns.items()}
    gold = answers[0] if answers else "42"
    return str(gold[0] if isinstance(gold, list) and gold else gold), {run.answer_column: gold, **first}


def _scores(reward: Callable, texts: list[str], columns: dict, chat: bool) -> list[float]:
    """The score of each text; minus infinity where there is none."""
    outcome = call(reward, [Case("thinking", "odd", text, columns=columns) for text in texts], chat)
    scores = outcome.scores or [None] * len(texts)
    return [-float("inf") if score is None or score != score else score for score in scores]


def _open(
    run: Planned, prompt: object, said: str, found: Opened, paid: list[tuple[str, Paid]], untried: str
) -> Finding | None:
    """The finding where the prompt opens a tag and leaves it open."""
    alone = f"so a completion holds {found.partner!r} and no {found.tag!r}"
    strict = [name for name, one in paid if one.whole and not one.rest]
    weak = [name for name, one in paid if one.less or one.blocked]
    mend = "; ".join(_ways_out(run, prompt, found)) + "."
    if strict:
        why = f"{_listed(strict)} pays only for completions with both tags, so it would pay for none in this run."
        return Finding("prefilled_think", f"{said}, {alone}.", why, mend)
    if weak:
        why = f"{_listed(weak)} pays less or nothing for a completion that starts inside the thinking."
        return Finding("prefilled_think", f"{said}, {alone}.", why, mend, "warning")
    if any(one.rest for _, one in paid):
        return None
    reason = untried or "they pay none of the forms that were tried"
    why = f"a reward that wants both tags would pay nothing; this could not be checked for yours ({reason})."
    return Finding("prefilled_think", f"{said}, {alone}.", why, mend, "warning")


def _closed(
    run: Planned, prompt: object, said: str, found: Opened, paid: list[tuple[str, Paid]], untried: str
) -> Finding | None:
    """The finding where the prompt opens and closes a tag, and a reward wants it in the completion."""
    strict = [name for name, one in paid if one.whole and not one.rest]
    if not strict:
        return None
    why = f"{_listed(strict)} pays only completions with {found.partner!r}, and the model has been told not to think."
    ways = [f"rewards that do not require thinking, in place of {_listed(strict)}"]
    if not isinstance(prompt, str) and opened(run, prompt, enable_thinking=True) != found:
        ways.insert(0, "enable_thinking=True in chat_template_kwargs, if it should think")
    return Finding("prefilled_think", f"{said}, so a completion holds neither.", why, "; or ".join(ways) + ".")


def _ways_out(run: Planned, prompt: "str | list[dict]", found: Opened) -> list[str]:
    """What helps, the first of which keeps the thinking."""
    fits = found.tag == "<think>"
    named = ", such as grpo_utils.rewards.think_format_reward" if fits else f" (in a pattern: ({found.tag})?)"
    ways = [f"a reward that accepts completions with and without the first {found.tag!r}{named}"]
    if isinstance(prompt, str):
        return [*ways, f"or {found.tag!r} taken off the end of the prompts"]
    if opened(run, prompt, enable_thinking=False) != found:
        ways.append("or chat_template_kwargs={'enable_thinking': False} and no reward for thinking")
    return [*ways, f"or a chat template that does not end the generation prompt with {found.tag!r}"]


def _listed(names: list[str]) -> str:
    return " and ".join(names)
