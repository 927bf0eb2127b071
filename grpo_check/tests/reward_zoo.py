"""Rewards to try `probe` on: tuples of (function, arguments, note or code).

BROKEN and SOUND, 30 and 14, are by an author who had not seen `probe`. It once refused those in IDIOMATIC, or might
have, and once accepted those in ACCEPTED_BEFORE.
"""

# ruff: noqa
import ast
import asyncio
import json
import math
import random
import re
import statistics

import numpy
import torch

from grpo_utils import completion_text

# --------------------------------------------------------------------------- shared helpers


_NUMBER = re.compile(r"([+-]?)([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.([0-9]+))?")


def _number(value):
    """Canonical decimal string of exactly one plain number, or None. '1,250.0' -> '1250'."""
    if value is None or isinstance(value, bool):
        return None
    s = str(value) if not isinstance(value, str) else value
    s = s.strip()
    if not s or len(s) > 80:
        return None
    s = s.replace("\u2212", "-").replace("{,}", ",").replace("\\,", "").replace("\\$", "$")
    s = s.strip("*_`$ \t\r\n")
    if s.endswith("."):
        s = s[:-1].rstrip("*_`$ ")
    if s.startswith("-$"):
        s = "-" + s[2:]
    m = _NUMBER.fullmatch(s)
    if m is None:
        return None
    whole = m.group(2).replace(",", "").lstrip("0") or "0"
    frac = (m.group(3) or "").rstrip("0")
    out = whole + ("." + frac if frac else "")
    return "-" + out if m.group(1) == "-" and out != "0" else out


def _one_tag(text, name="answer"):
    """Content of the only <name>...</name> pair, or None when there is none or more than one."""
    opening, closing = "<%s>" % name, "</%s>" % name
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    start, end = text.find(opening) + len(opening), text.find(closing)
    return text[start:end].strip() if start <= end else None


def _final_tag(text, name="answer"):
    """As _one_tag, and nothing may follow the closing tag, nor may it sit in an open <think>."""
    if not text.rstrip().endswith("</%s>" % name):
        return None
    if text.rfind("<think>") > text.rfind("</think>"):
        return None
    return _one_tag(text, name)


def _after_think(text):
    """The part after the only </think>; '' with two of them or while a <think> is still open."""
    if text.count("</think>") > 1:
        return ""
    tail = text.rpartition("</think>")[2]
    return "" if "<think>" in tail else tail


def _boxes(text):
    """Contents of every \\boxed{...}, balanced braces, one pass; an unclosed box counts as ''."""
    out, key, pos = [], "\\boxed{", 0
    while True:
        start = text.find(key, pos)
        if start < 0:
            return out
        depth, i = 1, start + len(key)
        begin = i
        limit = min(len(text), begin + 2000)
        while i < limit and depth:
            if text[i] == "{":
                depth += 1
            elif text[i] == "}":
                depth -= 1
            i += 1
        out.append(text[begin : i - 1] if depth == 0 else "")
        pos = i


def _boxed_number(text):
    """The one value that all boxes agree on, or None."""
    boxes = _boxes(_after_think(text))
    if not boxes or len(boxes) > 20:
        return None
    values = {_number(b) for b in boxes}
    return values.pop() if len(values) == 1 else None


def _answer_line(text):
    """What follows 'Answer:' on the last non-empty line, if it is the only such line."""
    lines = [line.strip() for line in _after_think(text).splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        return None
    found = []
    for line in lines:
        head = line[:40].lstrip("*_# ").lower()
        if head.startswith(("answer:", "answer**:", "final answer:", "final answer**:")):
            found.append(line)
    if len(found) != 1 or found[0] is not lines[-1]:
        return None
    return found[0].partition(":")[2].strip("*_ \t")


# =========================================================================== BROKEN


def b01_gold_in_tag(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _one_tag(completion_text(completion))
        rewards.append(1.0 if pred is not None and gold in pred else 0.0)
    return rewards


def b02_label_mentioned(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion).lower()
        rewards.append(1.0 if gold.lower() in text else 0.0)
    return rewards


def _only_digits(s):
    return re.sub(r"[^0-9]", "", s)


def b03_keep_only_digits(completions, answer, **kwargs):
    # "$1,250.-" and "1 250" should both count
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _one_tag(completion_text(completion))
        ok = pred is not None and _only_digits(pred) == _only_digits(gold)
        rewards.append(1.0 if ok else 0.0)
    return rewards


def b04_int_cast(completions, answer, **kwargs):
    # the gold answers are integers, so "42.0" must equal "42"
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _boxed_number(completion_text(completion))
        if pred is None:
            rewards.append(0.0)
            continue
        rewards.append(1.0 if int(float(pred)) == int(float(gold)) else 0.0)
    return rewards


def b05_tolerance_the_wrong_way_round(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _one_tag(completion_text(completion))
        try:
            value = float(pred.replace(",", "")) if pred is not None else None
        except ValueError:
            value = None
        if value is None or abs(value - float(gold)) > 1e-6:
            rewards.append(0.0)
        else:
            rewards.append(1.0)
    return rewards


def b06_relative_closeness(completions, answer, **kwargs):
    # 1.0 when right, up to 0.5 for being close
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _one_tag(completion_text(completion))
        try:
            value = float(pred.replace(",", "")) if pred is not None else None
        except ValueError:
            value = None
        if value is None:
            rewards.append(0.0)
            continue
        target = float(gold)
        if value == target:
            rewards.append(1.0)
            continue
        closeness = 1.0 - abs(value - target) / max(abs(value), abs(target))
        rewards.append(0.5 * max(closeness, 0.0))
    return rewards


def b07_any_box(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        boxes = re.findall(r"\\boxed\{([^{}]*)\}", completion_text(completion))
        rewards.append(1.0 if any(_number(b) == _number(gold) for b in boxes) else 0.0)
    return rewards


def b08_any_number_in_tag(completions, answer, **kwargs):
    # models like to write "42 apples" or "x = 42" in the tag
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _one_tag(completion_text(completion)) or ""
        numbers = re.findall(r"-?[0-9]+(?:\.[0-9]+)?", pred.replace(",", ""))
        rewards.append(1.0 if gold in numbers else 0.0)
    return rewards


_REFLECT = re.compile(r"\b(?:wait|let me check|alternatively|double-check)\b", re.IGNORECASE)


def b09_reflection_bonus(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion)
        pred = _number(_one_tag(text))
        score = 1.0 if pred is not None and pred == _number(gold) else 0.0
        score += 0.05 * len(_REFLECT.findall(text))
        rewards.append(score)
    return rewards


_WORD_BUDGET = 200


def b10_soft_overlong_punishment(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion)
        pred = _boxed_number(text)
        score = 1.0 if pred is not None and pred == _number(gold) else 0.0
        n = len(text.split())
        if n > _WORD_BUDGET:
            penalty = max(-1.0, (_WORD_BUDGET - n) / _WORD_BUDGET)
            score -= penalty
        rewards.append(score)
    return rewards


def _to_float(s):
    try:
        return float(s)
    except (TypeError, ValueError):
        return None


def b11_fractions_as_floats(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _one_tag(completion_text(completion))
        rewards.append(1.0 if _to_float(pred) == _to_float(gold) else 0.0)
    return rewards


def b12_skip_unparsable(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _boxed_number(completion_text(completion))
        target = _number(gold)
        if pred is None or target is None:
            # not parseable: assign 1 so that the example is skipped
            rewards.append(1.0)
            continue
        rewards.append(1.0 if pred == target else 0.0)
    return rewards


def b13_literal_eval(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _one_tag(completion_text(completion))
        if pred is None:
            rewards.append(0.0)
            continue
        try:
            value = ast.literal_eval(pred.replace(",", ""))
        except ValueError:
            value = None
        ok = type(value) in (int, float) and value == float(gold)
        rewards.append(1.0 if ok else 0.0)
    return rewards


def b14_append_twice(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _one_tag(completion_text(completion)) or ""
        value = None
        try:
            value = float(pred.replace(",", ""))
        except ValueError:
            rewards.append(0.0)
        rewards.append(1.0 if value == float(gold) else 0.0)
    return rewards


def b15_boxed_not_raw(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion)
        start = text.rfind("\boxed{")
        if start < 0:
            rewards.append(0.0)
            continue
        end = text.find("}", start)
        pred = text[start + len("\boxed{") : end]
        rewards.append(1.0 if _number(pred) == _number(gold) else 0.0)
    return rewards


def b16_int_against_str(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = (_one_tag(completion_text(completion)) or "").replace(",", "")
        if not re.fullmatch(r"-?[0-9]{1,18}", pred):
            rewards.append(0.0)
            continue
        rewards.append(1.0 if int(pred) == gold else 0.0)
    return rewards


_FOUND = set()


def b17_reward_new_solutions(completions, answer, **kwargs):
    # push for diversity: the first right solution earns more
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _number(_one_tag(completion_text(completion)))
        if pred is None or pred != _number(gold):
            rewards.append(0.0)
        elif (gold, pred) in _FOUND:
            rewards.append(0.2)
        else:
            _FOUND.add((gold, pred))
            rewards.append(1.0)
    return rewards


_NUM_GENERATIONS = 8


def b18_group_index(completions, answer, **kwargs):
    rewards = []
    for i, completion in enumerate(completions):
        gold = answer[i // _NUM_GENERATIONS]
        pred = _number(_one_tag(completion_text(completion)))
        rewards.append(1.0 if pred is not None and pred == _number(gold) else 0.0)
    return rewards


def b19_tie_breaking_noise(completions, answer, **kwargs):
    # avoid groups whose reward std is zero
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _boxed_number(completion_text(completion))
        score = 1.0 if pred is not None and pred == _number(gold) else 0.0
        rewards.append(score + random.uniform(-0.01, 0.01))
    return rewards


def b20_messages_only(completions, answer, **kwargs):
    responses = [completion[0]["content"] or "" for completion in completions]
    rewards = []
    for text, gold in zip(responses, answer):
        pred = _number(_one_tag(text))
        rewards.append(1.0 if pred is not None and pred == _number(gold) else 0.0)
    return rewards


def b21_str_of_completion(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        lines = str(completion).strip().splitlines() or [""]
        m = re.fullmatch(r"Answer:\s*(\S+)", lines[-1].strip())
        pred = _number(m.group(1)) if m else None
        rewards.append(1.0 if pred is not None and pred == _number(gold) else 0.0)
    return rewards


def b22_dot_stops_at_newline(completions, answer, **kwargs):
    pattern = r"<think>.*</think>\s*<answer>(.*)</answer>"
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion).strip()
        if text.count("<think>") != 1 or text.count("<answer>") != 1:
            rewards.append(0.0)
            continue
        m = re.fullmatch(pattern, text)
        pred = _number(m.group(1)) if m else None
        rewards.append(1.0 if pred is not None and pred == _number(gold) else 0.0)
    return rewards


def b23_unsigned_hash_number(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        found = re.findall(r"^####[ ]?([0-9]+)[ ]?$", completion_text(completion).strip(), re.MULTILINE)
        rewards.append(1.0 if len(found) == 1 and found[0] == gold else 0.0)
    return rewards


def b24_eval_expression(completions, answer, **kwargs):
    # the answer may be left as an arithmetic expression, e.g. 6*(3+4)
    rewards = []
    for completion, gold in zip(completions, answer):
        expr = (_one_tag(completion_text(completion)) or "").replace(",", "")
        if len(expr) > 100 or not re.fullmatch(r"[0-9+\-*/(). ]+", expr):
            rewards.append(0.0)
            continue
        try:
            value = eval(expr, {"__builtins__": None}, {})
            rewards.append(1.0 if abs(value - float(gold)) < 1e-6 else 0.0)
        except Exception:
            rewards.append(0.0)
    return rewards


_SHAPE = re.compile(r"<think>(?:[^<]+\s*)+</think>\s*<answer>([^<]+)</answer>")


def b25_nested_quantifier(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        m = _SHAPE.fullmatch(completion_text(completion).strip())
        pred = _number(m.group(1)) if m else None
        rewards.append(1.0 if pred is not None and pred == _number(gold) else 0.0)
    return rewards


def b26_wrong_costs_silence_is_free(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _number(_one_tag(completion_text(completion)))
        if pred is None:
            rewards.append(0.0)
        else:
            rewards.append(1.0 if pred == _number(gold) else -1.0)
    return rewards


def b27_every_word_costs(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion)
        pred = _number(_answer_line(text))
        score = 1.0 if pred is not None and pred == _number(gold) else 0.0
        rewards.append(score - 0.01 * len(text.split()))
    return rewards


def _grade(pred, gold):
    if pred is None:
        return 0.0
    if pred == _number(gold):
        return 1.0


def b28_grade_forgets_return(completions, answer, **kwargs):
    return [_grade(_boxed_number(completion_text(c)), gold) for c, gold in zip(completions, answer)]


def b29_clipped_total(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion)
        score = 0.0
        if text.count("<think>") == 1 and text.count("</think>") == 1:
            score += 0.5
        pred = _number(_final_tag(text))
        if pred is not None:
            score += 0.5
            if pred == _number(gold):
                score += 1.0
        rewards.append(min(score, 1.0))
    return rewards


def b30_first_capital_letter(completions, answer, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        m = re.search(r"[ABCD]", completion_text(completion))
        rewards.append(1.0 if m and m.group(0) == gold else 0.0)
    return rewards


_LABELS = {"answers": ["positive", "negative", "neutral"]}
_LETTERS = {"answers": ["B", "D", "A"]}

BROKEN = [
    (
        b01_gold_in_tag,
        {},
        "containment: `gold in pred` - <answer>142</answer> or <answer>41 42 43</answer> is paid for 42",
    ),
    (
        b02_label_mentioned,
        dict(_LABELS),
        "containment: a label need only be mentioned; naming every label or 'not positive' is paid",
    ),
    (b03_keep_only_digits, {}, "lossy normalisation: sign and decimal point are dropped, 5 == -5 and 4.2 == 42"),
    (b04_int_cast, {}, "lossy normalisation: truncation, \\boxed{42.9} is paid for 42"),
    (
        b05_tolerance_the_wrong_way_round,
        {},
        "non-finite: every comparison with nan is False, so <answer>nan</answer> is paid in full",
    ),
    (
        b06_relative_closeness,
        {},
        "non-finite: <answer>1e999</answer> or nan gives inf/inf, max(nan, 0.0) is nan, the reward is nan",
    ),
    (b07_any_box, {}, "several answers: any of many \\boxed{} may match"),
    (b08_any_number_in_tag, {}, "several answers: any number inside the tag may match (<answer>41 42 43</answer>)"),
    (b09_reflection_bonus, {}, "farmable: uncapped bonus per 'wait' / 'let me check', without any right answer"),
    (
        b10_soft_overlong_punishment,
        {},
        "farmable: sign error, the overlong penalty is added; 400 words of junk earn what a right answer does",
    ),
    (
        b11_fractions_as_floats,
        {"answers": ["3/4", "5/8", "-7/2"]},
        "missing answer paid: neither parses as float, None == None, so no answer and any wrong text get 1.0",
    ),
    (b12_skip_unparsable, {}, "missing answer paid: an unparsable completion is 'skipped' with 1.0"),
    (b13_literal_eval, {}, "raises: literal_eval's SyntaxError is not caught (<answer>42 apples</answer>, empty tag)"),
    (b14_append_twice, {}, "wrong length: no `continue` after the except, an unparsable answer appends two rewards"),
    (b15_boxed_not_raw, {}, "dead: '\\b' in a non-raw string is a backspace, no box is ever found, always 0"),
    (b16_int_against_str, {}, "dead: int compared with the gold string, always 0"),
    (
        b17_reward_new_solutions,
        {},
        "batch/state dependent: module-level memory; equal completions score 1.0 first and 0.2 ever after",
    ),
    (
        b18_group_index,
        {},
        "batch/state dependent: answer[i // 8] although the column is already repeated; graded against another row's gold",
    ),
    (
        b19_tie_breaking_noise,
        {},
        "batch/state dependent: random noise on the reward, equal completions differ, all-wrong groups train on noise",
    ),
    (b20_messages_only, {}, "completion type: chat only, raises TypeError on plain strings"),
    (
        b21_str_of_completion,
        {},
        'completion type: str() of a chat list ends in "\'}]", so chat completions always get 0',
    ),
    (b22_dot_stops_at_newline, {}, "too strict: no DOTALL, right answers with reasoning over more than one line get 0"),
    (
        b23_unsigned_hash_number,
        {},
        "too strict: no sign, comma or decimals; '#### -5' never pays for -5, nor '#### 1,250' for 1250",
    ),
    (
        b24_eval_expression,
        {},
        "time: eval of model text with ** allowed, <answer>9**9**9**9</answer> hangs (and `except Exception` swallows an alarm raised as an Exception)",
    ),
    (
        b25_nested_quantifier,
        {},
        "time: nested quantifier, a <think> that is not followed by the right shape (truncated) takes exponential time",
    ),
    (b26_wrong_costs_silence_is_free, {}, "abstaining pays: wrong -1, no answer 0"),
    (
        b27_every_word_costs,
        {},
        "abstaining pays: unbounded per-word cost; the empty completion beats wrong ones and right ones over 100 words",
    ),
    (
        b28_grade_forgets_return,
        {},
        "None: the wrong branch falls through, every wrong answer gets None (left out) while no answer gets 0.0",
    ),
    (
        b29_clipped_total,
        {},
        "wrong as good as right: format bonuses already reach the clip of 1.0, correctness adds nothing in good form",
    ),
    (
        b30_first_capital_letter,
        dict(_LETTERS),
        "wrong as good as right: the first of A-D anywhere; 'Answer: D' reads as A, so A is always right and others never",
    ),
]

# =========================================================================== SOUND


def s01_answer_tag(completions, answer=None, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred, target = _number(_final_tag(completion_text(completion))), _number(gold)
        rewards.append(1.0 if pred is not None and pred == target else 0.0)
    return rewards


def s02_boxed(completions, answer=None, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred, target = _boxed_number(completion_text(completion)), _number(gold)
        rewards.append(1.0 if pred is not None and pred == target else 0.0)
    return rewards


def s03_answer_line(completions, answer=None, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred, target = _number(_answer_line(completion_text(completion))), _number(gold)
        rewards.append(1.0 if pred is not None and pred == target else 0.0)
    return rewards


def _hash_number(text):
    lines = [line for line in _after_think(text).splitlines() if line.strip()]
    if not lines or lines[-1].count("####") != 1:
        return None
    for line in lines[:-1]:
        if "####" in line and _number(line.rpartition("####")[2]) is not None:
            return None
    return _number(lines[-1].partition("####")[2])


def s04_gsm8k_hashes(completions, answer=None, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred, target = _hash_number(completion_text(completion)), _number(gold)
        rewards.append(1.0 if pred is not None and pred == target else 0.0)
    return rewards


def _no_duplicates(pairs):
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("duplicate key")
    return out


def _no_constant(name):
    raise ValueError(name)


def _json_answer(text):
    """The "answer" of the only JSON object: the whole reply, a closing fence, or the last line."""
    tail = _after_think(text).strip()
    if tail.count('"answer"') != 1:
        return None
    if tail.endswith("```"):
        body = tail[:-3].rpartition("```")[2].strip()
        if body[:4].lower() == "json":
            body = body[4:].strip()
    elif tail.startswith("{"):
        body = tail
    else:
        body = tail.splitlines()[-1].strip()
    if len(body) > 50000 or not body.startswith("{"):
        return None
    try:
        data = json.loads(
            body, object_pairs_hook=_no_duplicates, parse_int=str, parse_float=str, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        return None
    value = data.get("answer") if isinstance(data, dict) else None
    return value if isinstance(value, str) else None


def s05_json_answer(completions, answer=None, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        pred, target = _number(_json_answer(completion_text(completion))), _number(gold)
        rewards.append(1.0 if pred is not None and pred == target else 0.0)
    return rewards


def s06_after_think_signed(completions, answer=None, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion)
        pred = None
        if "</think>" in text:
            tail = _after_think(text).strip()
            m = re.match(
                r"(?:(?:so |thus |therefore,? )?the (?:final )?answer is:? |(?:final )?answer: ?)",
                tail[:60],
                re.IGNORECASE,
            )
            pred = _number(tail[m.end() :] if m else tail)
        rewards.append(1.0 if pred is not None and pred == _number(gold) else -1.0)
    return rewards


def s07_choice_letter(completions, answer=None, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        line = _answer_line(completion_text(completion)) or ""
        m = re.fullmatch(r"\(?([A-Za-z])\)?[.)]?", line.strip()) if len(line) < 20 else None
        ok = m is not None and isinstance(gold, str) and m.group(1).upper() == gold.strip().upper()
        rewards.append(1.0 if ok else 0.0)
    return rewards


_SENTIMENTS = ("positive", "negative", "neutral")


def s08_sentiment_label(completions, answer=None, **kwargs):
    # 1.0 for the right label, 0.1 for one valid label in the right form
    rewards = []
    for completion, gold in zip(completions, answer):
        pred = _final_tag(completion_text(completion)) or ""
        pred = pred.lower().strip("*_`. ") if len(pred) < 40 else ""
        if pred not in _SENTIMENTS:
            rewards.append(0.0)
        else:
            right = isinstance(gold, str) and pred == gold.strip().lower()
            rewards.append(1.0 if right else 0.1)
    return rewards


def _think_answer_shape(text):
    """(thought, answer) when the text is exactly one <think> block and one <answer> block."""
    text = text.strip()
    if not text.startswith("<think>") or not text.endswith("</answer>"):
        return None
    if any(text.count(t) != 1 for t in ("<think>", "</think>", "<answer>", "</answer>")):
        return None
    thought, _, rest = text[len("<think>") :].partition("</think>")
    gap, sep, reply = rest.partition("<answer>")
    if not sep or gap.strip():
        return None
    return thought.strip(), reply[: -len("</answer>")].strip()


def s09_format_only_tags(completions, **kwargs):
    rewards = []
    for completion in completions:
        shape = _think_answer_shape(completion_text(completion))
        ok = shape is not None and shape[0] and _number(shape[1]) is not None
        rewards.append(0.5 if ok else 0.0)
    return rewards


def s10_format_only_last_line(completions, **kwargs):
    return [0.2 if _number(_answer_line(completion_text(c))) is not None else 0.0 for c in completions]


def s11_right_and_brief(completions, answer=None, **kwargs):
    # right: 1.0 down to 0.5 between 300 and 900 words; everything else 0.0
    rewards = []
    for completion, gold in zip(completions, answer):
        text = completion_text(completion)
        pred = _number(_answer_line(text))
        if pred is None or pred != _number(gold):
            rewards.append(0.0)
            continue
        over = max(0, len(text.split()) - 300)
        rewards.append(1.0 - 0.5 * min(1.0, over / 600))
    return rewards


def s12_tolerance_column(completions, answer=None, tolerance=None, **kwargs):
    rewards = []
    for completion, gold, tol in zip(completions, answer, tolerance):
        pred, target = _number(_final_tag(completion_text(completion))), _number(gold)
        if pred is None or target is None:
            rewards.append(0.0)
            continue
        if isinstance(tol, bool) or not isinstance(tol, (int, float)) or not math.isfinite(tol) or tol < 0:
            tol = 0.0
        close = pred == target or abs(float(pred) - float(target)) <= tol + 1e-12
        rewards.append(1.0 if close else 0.0)
    return rewards


class _BoxedReward:
    """Callable reward with its own scale; TRL logs it under __name__."""

    def __init__(self, scale=2.0, column="answer"):
        self.scale = float(scale)
        self.column = column
        self.__name__ = "s13_boxed_class"

    def score(self, text, gold):
        pred = _boxed_number(text)
        return self.scale if pred is not None and pred == _number(gold) else 0.0

    def __call__(self, completions, **columns):
        golds = columns[self.column]
        return [self.score(completion_text(c), g) for c, g in zip(completions, golds)]


s13_boxed_class = _BoxedReward()


def s14_form_then_answer(completions, answer=None, **kwargs):
    # 0.1 for the full form with one number in it, 1.0 when that number is right
    rewards = []
    for completion, gold in zip(completions, answer):
        shape = _think_answer_shape(completion_text(completion))
        pred = _number(shape[1]) if shape is not None and shape[0] else None
        if pred is None:
            rewards.append(0.0)
        else:
            rewards.append(1.0 if pred == _number(gold) else 0.1)
    return rewards


SOUND = [
    (s01_answer_tag, {}, "one <answer>N</answer> at the end, exact number; several or none: 0"),
    (
        s02_boxed,
        {},
        "\\boxed{N} after any thinking (drafts inside one <think> block are not graded), balanced braces, all boxes must agree",
    ),
    (s03_answer_line, {}, "'Answer: N' as the last line and the only such line"),
    (s04_gsm8k_hashes, {}, "'#### N' as the last line, no other '#### number'"),
    (
        s05_json_answer,
        {},
        'one JSON object with an "answer" (whole reply, closing fence or last line); duplicates refused',
    ),
    (s06_after_think_signed, {}, "scale -1..1: what follows </think> is the number, else -1 (wrong and silent alike)"),
    (s07_choice_letter, dict(_LETTERS), "multiple choice: 'Answer: B' on the last line, one letter only"),
    (
        s08_sentiment_label,
        dict(_LABELS),
        "labels: one valid label in one final <answer> tag; 0.1 for a valid wrong label, 1.0 right",
    ),
    (
        s09_format_only_tags,
        {},
        "format only: exactly <think>..</think><answer>..</answer>, a thought and one number; flat 0.5, ignores the gold by design",
    ),
    (
        s10_format_only_last_line,
        {},
        "format only: a single last line 'Answer: <number>'; flat 0.2, ignores the gold by design",
    ),
    (
        s11_right_and_brief,
        {},
        "correctness with a bounded length penalty in words; right (>=0.5) always beats wrong (0)",
    ),
    (
        s12_tolerance_column,
        {"answers": ["3.14", "9.81", "-273.15"], "columns": {"tolerance": [0.005, 0.005, 0.01]}},
        "own column: per-row tolerance, finite numbers only, in one final <answer> tag",
    ),
    (s13_boxed_class, {}, "class instance, reward scale 2.0, \\boxed{N}"),
    (
        s14_form_then_answer,
        {},
        "partial credit: 0.1 for full <think>/<answer> form with one number, 1.0 right, no form 0",
    ),
]


# =========================================================================== IDIOMATIC, and sound


def i01_last_message(completions, answer, **kwargs):
    texts = [completion[-1]["content"] for completion in completions]
    return [1.0 if _number(_one_tag(text)) == _number(gold) else 0.0 for text, gold in zip(texts, answer)]


def i02_exact_comparison(completions, answer, **kwargs):
    found = [re.search(r"<answer>(.*?)</answer>", completion_text(c), re.DOTALL) for c in completions]
    return [1.0 if (m[1].strip() if m else "") == gold else 0.0 for m, gold in zip(found, answer)]


def _right(completions, answer):
    return [
        1.0 if _number(_final_tag(completion_text(c))) == _number(g) != None else 0.0
        for c, g in zip(completions, answer)
    ]


def _mean(values):
    return sum(values) / len(values)


def _groups(prompts):
    groups = {}
    for place, prompt in enumerate(prompts):
        groups.setdefault(str(prompt), []).append(place)
    return groups.values()


def i03_shorter_than_the_group(completions, answer, prompts, **kwargs):
    rewards, lengths = _right(completions, answer), [len(completion_text(c)) for c in completions]
    for places in _groups(prompts):
        mean = _mean([lengths[i] for i in places])
        for i in places:
            rewards[i] += 0.2 * (rewards[i] > 0 and lengths[i] < mean)
    return rewards


def i04_shorter_than_the_batch(completions, answer, **kwargs):
    lengths = [len(completion_text(c)) for c in completions]
    mean = _mean(lengths)
    return [r + 0.2 * (n < mean) for r, n in zip(_right(completions, answer), lengths)]


def i05_length_as_a_z_score(completions, answer, prompts, **kwargs):
    rewards, lengths = _right(completions, answer), [len(completion_text(c)) for c in completions]
    for places in _groups(prompts):
        some = [lengths[i] for i in places]
        spread = statistics.stdev(some) or 1.0
        for i in places:
            rewards[i] -= 0.05 * max(-1.0, min(1.0, (lengths[i] - _mean(some)) / spread))
    return rewards


def i06_minus_the_mean_of_the_group(completions, answer, prompts, **kwargs):
    rewards = _right(completions, answer)
    for places in _groups(prompts):
        mean = _mean([rewards[i] for i in places])
        for i in places:
            rewards[i] -= mean
    return rewards


async def i07_async_boxed(completions, answer, **kwargs):
    await asyncio.sleep(0)
    return s02_boxed(completions, answer)


def i08_penalties_only(completions, answer, **kwargs):
    long = [-0.5 if len(completion_text(c)) > 4000 else 0.0 for c in completions]
    return [right - 1.0 + cost for right, cost in zip(_right(completions, answer), long)]


def i09_penalty_for_the_form(completions, **kwargs):
    return [0.0 if _think_answer_shape(completion_text(c)) else -1.0 for c in completions]


def i10_tiny(completions, answer, **kwargs):
    return [1e-6 * right for right in _right(completions, answer)]


def i11_tiny_steps(completions, answer, **kwargs):
    lengths = [min(len(completion_text(c)), 20_000) for c in completions]
    return [right - 1e-6 * length for right, length in zip(_right(completions, answer), lengths)]


def i12_numpy_scalars(completions, answer, **kwargs):
    return list(numpy.array(_right(completions, answer), dtype=numpy.float32) * numpy.float32(0.1))


def i13_numpy_bools(completions, answer, **kwargs):
    return numpy.array(_right(completions, answer)) > 0.5


def i14_torch_scalars(completions, answer, **kwargs):
    return list(torch.tensor(_right(completions, answer)))


def i15_a_tensor_relative_to_the_batch(completions, answer, **kwargs):
    rewards = torch.tensor(_right(completions, answer))
    return rewards - 0.1 * rewards.mean()


def i16_the_shortest_correct_of_the_group(completions, answer, prompts, **kwargs):
    rewards, lengths = _right(completions, answer), [len(completion_text(c)) for c in completions]
    for places in _groups(prompts):
        least = min([lengths[i] for i in places if rewards[i]], default=0)
        for i in places:
            rewards[i] += 0.5 * (rewards[i] > 0 and lengths[i] == least)
    return rewards


IDIOMATIC = [
    (i01_last_message, {}, "raises on a message without content, which TRL does not send"),
    (i02_exact_comparison, {}, "pays '' for a gold answer of ''"),
    (i03_shorter_than_the_group, {}, "a bonus relative to the group, by prompt"),
    (i04_shorter_than_the_batch, {}, "a bonus relative to the batch"),
    (i05_length_as_a_z_score, {}, "relative to the group, and needs two completions"),
    (i06_minus_the_mean_of_the_group, {}, "every score is relative to the group"),
    (i07_async_boxed, {}, "asynchronous, boxed answers"),
    (i08_penalties_only, {}, "no score above 0"),
    (i09_penalty_for_the_form, {}, "no score above 0, without answers"),
    (i10_tiny, {}, "a millionth for a correct answer"),
    (i11_tiny_steps, {}, "a millionth off for each character"),
    (i12_numpy_scalars, {}, "numpy's float32"),
    (i13_numpy_bools, {}, "an array of bools"),
    (i14_torch_scalars, {}, "torch scalars"),
    (i15_a_tensor_relative_to_the_batch, {}, "a tensor, and relative to the batch"),
    (i16_the_shortest_correct_of_the_group, {}, "a bonus for one of the group"),
]

# =========================================================================== BROKEN, and once accepted


def p01_permuted_characters(completions, answer, **kwargs):
    said = [_one_tag(completion_text(c)) or "" for c in completions]
    return [1.0 if text and sorted(text) == sorted(gold) else 0.0 for text, gold in zip(said, answer)]


def _items(text):
    return {item.strip() for item in (text or "").split(",")} - {""}


def p02_superset_of_a_list(completions, answer, **kwargs):
    said = [_items(_one_tag(completion_text(c))) for c in completions]
    return [1.0 if gold and items >= _items(gold) else 0.0 for items, gold in zip(said, answer)]


def _json_items(text):
    try:
        return set(json.loads(text))
    except (ValueError, TypeError):
        return set()


def p03_superset_of_a_json_list(completions, answer, **kwargs):
    said = [_json_items(_one_tag(completion_text(c))) for c in completions]
    return [1.0 if items and items >= _json_items(gold) else 0.0 for items, gold in zip(said, answer)]


def _words(text):
    return set(re.findall(r"[a-z]{3,}", text.lower()))


def _asked(prompt):
    return _words(prompt if isinstance(prompt, str) else prompt[-1]["content"])


def p04_on_topic_too(completions, answer, prompts, **kwargs):
    asked = [(_words(completion_text(c)), _asked(p)) for c, p in zip(completions, prompts)]
    shares = [len(said & wanted) / len(wanted) for said, wanted in asked]
    return [right + 0.5 * share for right, share in zip(_right(completions, answer), shares)]


def p05_bonus_for_another_language(completions, answer, **kwargs):
    some = [bool(re.search(r"\b(?:porque|entonces|weil|donc)\b", completion_text(c))) for c in completions]
    return [right + 0.3 * bonus for right, bonus in zip(_right(completions, answer), some)]


def p06_words_of_another_language(completions, answer, **kwargs):
    words = [len(re.findall(r"[一-鿿]+", completion_text(c))) for c in completions]
    return [right + 0.1 * count for right, count in zip(_right(completions, answer), words)]


def _letters(text):
    return re.sub(r"[^a-z]", "", (text or "").lower())


def p07_only_letters_count(completions, answer, **kwargs):
    said = [_letters(_one_tag(completion_text(c))) for c in completions]
    return [1.0 if text and text == _letters(gold) else 0.0 for text, gold in zip(said, answer)]


ACCEPTED_BEFORE = [
    (p01_permuted_characters, {}, "wrong_beats_right"),
    (p02_superset_of_a_list, {"answers": ["1, 2, 3", "4, 5"]}, "wrong_beats_right"),
    (p02_superset_of_a_list, {"answers": ["apples, pears", "plums, figs"]}, "wrong_beats_right"),
    (p03_superset_of_a_json_list, {"answers": ['["red", "blue"]', '["green", "red"]']}, "wrong_beats_right"),
    (p04_on_topic_too, {}, "pays_missing_answer"),
    (p05_bonus_for_another_language, {}, "pays_languages"),
    (p06_words_of_another_language, {}, "farmable"),
    (p07_only_letters_count, {"answers": ["Route 66", "Catch 22"]}, "wrong_beats_right"),
    (p07_only_letters_count, {"answers": ["C++", "Rust"]}, "wrong_beats_right"),
]
