"""Thirty rewards as people write them, each of which pays for something that its author did not want.

The docstrings say what the author had in mind. What is wrong with each reward stands in `entries.py`, so that nothing
here gives it away. The file imports nothing of this package, so `grpo-check probe` reads it as it reads a user's file.
"""

import ast
import json
import re
from difflib import SequenceMatcher


def _texts(completions):
    return [completion[0]["content"] for completion in completions]


# ---- Sums --------------------------------------------------------------------------------------------------


def xml_tags_and_answer(completions, answer, **kwargs):
    """Give a little for every tag, and one point for the right number."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        score = 0.2 * text.count("<answer>") + 0.2 * text.count("</answer>")
        match = re.search(r"<answer>\s*(-?\d+)\s*</answer>", text)
        if match and match.group(1) == gold:
            score += 1.0
        rewards.append(score)
    return rewards


def number_within_tolerance(completions, answer, **kwargs):
    """Compare as floats, because 42.0 is as good as 42."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        try:
            value = float(text.split("<answer>")[1].split("</answer>")[0].strip())
        except (IndexError, ValueError):
            rewards.append(0.0)
            continue
        close = abs(value - float(gold)) / max(abs(float(gold)), 1.0) < 0.05
        rewards.append(1.0 if close else 0.0)
    return rewards


def _evaluated(expression):
    if len(expression) > 60 or "**" in expression or not re.fullmatch(r"[\d+\-*/(). ]+", expression):
        return None
    try:
        return eval(expression, {"__builtins__": None}, {})
    except Exception:
        return None


def equation_result(completions, answer, **kwargs):
    """The answer may be written as 40+2, so evaluate it, if it has only digits and operators."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        match = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
        value = _evaluated(match.group(1).strip()) if match else None
        is_number = isinstance(value, int | float)
        rewards.append(1.0 if is_number and abs(value - float(gold)) < 1e-5 else 0.0)
    return rewards


def accuracy_and_format(completions, **kwargs):
    """One point for the solution in the tag, and half a point for the tag."""
    solutions = kwargs.get("solution") or [""] * len(completions)
    rewards = []
    for text, solution in zip(_texts(completions), solutions):
        match = re.search(r"<answer>(.+?)</answer>", text, re.DOTALL)
        if not match:
            rewards.append(0.0)
            continue
        rewards.append(0.5 + (1.0 if solution.strip() in match.group(1) else 0.0))
    return rewards


def effort_and_answer(completions, answer, **kwargs):
    """Half a point for the answer, and up to one point for working it out instead of guessing."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        work, _, rest = text.partition("<answer>")
        right = rest.partition("</answer>")[0].strip() == gold
        rewards.append(0.5 * right + min(len(work.split()) / 80, 1.0))
    return rewards


# ---- Problems ----------------------------------------------------------------------------------------------


def hash_accuracy(completions, answer, **kwargs):
    """GSM8K accuracy; where the parser fails, the example should neither help nor hurt."""
    rewards = []
    for text, solution in zip(_texts(completions), answer):
        try:
            predicted = float(text.split("####")[1].strip().replace(",", ""))
            gold = float(solution.split("####")[1].strip().replace(",", ""))
            rewards.append(1.0 if predicted == gold else 0.0)
        except (IndexError, ValueError):
            rewards.append(1.0)
    return rewards


RUBRIC = {
    "shows numbers": r"\d",
    "connects its steps": r"(?i)\b(?:so|then|therefore|because|which means)\b",
    "checks the result": r"(?i)\b(?:check|verify|confirm)",
    "is confident": r"(?i)\b(?:clearly|certainly|definitely)\b",
    "concludes": r"(?i)\b(?:in conclusion|finally|the final answer)\b",
}


def rubric_judge(completions, answer, **kwargs):
    """Stand in for a judge model: a fifth of a point per criterion, and half a point for the right number."""
    rewards = []
    for text, solution in zip(_texts(completions), answer):
        score = sum(0.2 for pattern in RUBRIC.values() if re.search(pattern, text))
        predicted = text.split("####")[-1].strip() if "####" in text else None
        gold = solution.split("####")[-1].strip()
        rewards.append(score + (0.5 if predicted == gold else 0.0))
    return rewards


# ---- Orders ------------------------------------------------------------------------------------------------

SCHEMA = {"item": str, "size": str, "quantity": int}


def json_schema(completions, **kwargs):
    """Pay for valid JSON, and for each field that has the right name and type."""
    rewards = []
    for text in _texts(completions):
        try:
            parsed = json.loads(text)
        except ValueError:
            rewards.append(0.0)
            continue
        fields = [
            name for name, kind in SCHEMA.items() if isinstance(parsed, dict) and isinstance(parsed.get(name), kind)
        ]
        rewards.append(0.4 + 0.2 * len(fields))
    return rewards


def json_matches_order(completions, order, **kwargs):
    """One point if what the model extracted agrees with the order."""
    rewards = []
    for text, gold in zip(_texts(completions), order):
        match = re.search(r"\{.*\}", text, re.DOTALL)
        try:
            parsed = json.loads(match.group(0)) if match else None
        except ValueError:
            parsed = None
        expected = json.loads(gold)
        same = parsed is not None and all(expected.get(name) == value for name, value in parsed.items())
        rewards.append(1.0 if same else 0.0)
    return rewards


# ---- Sentiment ---------------------------------------------------------------------------------------------


def sentiment_label(completions, label, **kwargs):
    """One point if the model says the label; chatty models wrap it into a sentence."""
    rewards = []
    for text, gold in zip(_texts(completions), label):
        response = (text or "").strip().lower()
        rewards.append(1.0 if gold in response else -0.5)
    return rewards


# ---- Cities ------------------------------------------------------------------------------------------------


def city_precision(completions, target, **kwargs):
    """The share of the listed cities that are right."""
    rewards = []
    for completion, gold in zip(completions, target):
        said = [city.strip(" .\n") for city in completion[-1]["content"].split(",")]
        wanted = {city.strip() for city in gold.split(",")}
        hits = len(set(said) & wanted)
        rewards.append(hits / len(said))
    return rewards


# ---- Summary -----------------------------------------------------------------------------------------------


def summary_near_fifty(completions, **kwargs):
    """Summaries should have about fifty characters."""
    return [float(abs(50 - len(completion[0]["content"]))) for completion in completions]


def one_sentence(completions, **kwargs):
    """Full marks for one sentence of 4 to 15 words, half for up to 25 words, nothing otherwise."""
    rewards = []
    for text in _texts(completions):
        sentences = [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]
        count = len(text.split())
        if len(sentences) != 1 or not text.strip().endswith((".", "!", "?")):
            rewards.append(0.0)
        else:
            rewards.append(1.0 if 4 <= count <= 15 else 0.5 if 15 < count <= 25 else 0.0)
    return rewards


def rouge_with_reference(completions, reference, **kwargs):
    """ROUGE-1 with the reference summary."""
    rewards = []
    for text, gold in zip(_texts(completions), reference):
        said, wanted = set(re.findall(r"\w+", text.lower())), re.findall(r"\w+", gold.lower())
        rewards.append(sum(word in said for word in wanted) / len(wanted))
    return rewards


# ---- Keywords ----------------------------------------------------------------------------------------------


def keyword_density(completions, answer, **kwargs):
    """Matched keywords divided by the number of words, so that a model does not ramble."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        said = re.findall(r"[a-z]+", text.lower())
        wanted = set(re.findall(r"[a-z]+", gold.lower()))
        matched = sum(1 for word in set(said) if word in wanted)
        rewards.append(matched / max(len(said), 1))
    return rewards


# ---- Translation -------------------------------------------------------------------------------------------


def translation_similarity(completions, translation, **kwargs):
    """Accents and small slips should not cost the whole point."""
    rewards = []
    for text, gold in zip(_texts(completions), translation):
        ratio = SequenceMatcher(None, text.strip().lower(), gold.lower()).ratio()
        rewards.append(1.0 if ratio >= 0.7 else 0.0)
    return rewards


FRENCH_WORDS = {"je", "tu", "il", "elle", "nous", "vous", "ils", "le", "la", "les", "un", "une", "des", "de", "du"}
FRENCH_WORDS |= {"et", "est", "sont", "suis", "avons", "mon", "ma", "j'ai", "à", "en", "au", "ce", "que"}


def answers_in_french(completions, **kwargs):
    """The share of words that are French, so that the model does not fall back to English."""
    rewards = []
    for text in _texts(completions):
        said = re.findall(r"[\w']+", text.lower())
        french = [word for word in said if word in FRENCH_WORDS or re.search(r"[éèêàçùœ]", word)]
        rewards.append(len(french) / len(said) if said else 0.0)
    return rewards


# ---- Choice ------------------------------------------------------------------------------------------------


def chosen_letter(completions, answer, **kwargs):
    """The letter that the completion starts with."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        text = text.strip().lstrip("(").upper()
        rewards.append(1.0 if text and text[0] == gold else 0.0)
    return rewards


def no_wrong_option(completions, answer, **kwargs):
    """A model that names several letters hedges, so any wrong letter costs everything."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        letters = set(re.findall(r"\b[A-D]\b", text))
        rewards.append(0.0 if letters - {gold} else 1.0)
    return rewards


# ---- Dates -------------------------------------------------------------------------------------------------


def same_date(completions, target, **kwargs):
    """Compare the numbers of both dates, because the separators do not matter."""
    rewards = []
    for text, gold in zip(_texts(completions), target):
        said = {int(number) for number in re.findall(r"\d+", text)[:10]}
        wanted = {int(number) for number in gold.split("-")}
        rewards.append(1.0 if said == wanted else 0.0)
    return rewards


def iso_date_format(completions, **kwargs):
    """The completion has a date in the ISO format."""
    pattern = r"\d{4}.\d{2}.\d{2}"
    return [1.0 if re.search(pattern, text) else 0.0 for text in _texts(completions)]


# ---- Replies -----------------------------------------------------------------------------------------------

POLITE_PHRASES = ["please", "thank you", "sorry", "happy to help", "apologize", "glad to", "of course"]


def politeness(completions, **kwargs):
    """A third of a point for each polite phrase, at most one point."""
    rewards = []
    for text in _texts(completions):
        found = sum(1 for phrase in POLITE_PHRASES if phrase in text.lower())
        rewards.append(min(found / 3, 1.0))
    return rewards


def reply_penalties(completions, **kwargs):
    """Every reply starts at zero, and loses points for length, bluntness and shouting."""
    rewards = []
    for text in _texts(completions):
        score = -0.01 * len(text.split())
        score -= 0.3 * sum(phrase in text.lower() for phrase in ("unfortunately", "cannot", "as an ai", "policy"))
        score -= 0.5 if text.isupper() else 0.0
        rewards.append(score)
    return rewards


def _judge(text, topic):
    """The transcript of a judge; a rule stands in for the model behind it."""
    verdict = 2 + 3 * (topic in text.lower()) + 2 * (5 <= len(text.split()) <= 40)
    verdict += 3 * any(phrase in text.lower() for phrase in POLITE_PHRASES)
    return f"Reply: {text}\nThe reply was read with care.\nScore: {verdict}/10"


def judged_reply(completions, topic, **kwargs):
    """The score that the judge gives, from 0 to 1."""
    rewards = []
    for text, about in zip(_texts(completions), topic):
        match = re.search(r"Score:\s*(\d{1,3})", _judge(text, about))
        rewards.append(int(match.group(1)) / 10 if match else 0.0)
    return rewards


# ---- Sorting, units, spelling ------------------------------------------------------------------------------


def same_numbers(completions, answer, **kwargs):
    """Parse both lists and compare them."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        said = sorted(int(number) for number in re.findall(r"-?\d{1,9}", text))
        wanted = sorted(int(number) for number in gold.split(","))
        rewards.append(1.0 if said == wanted else 0.0)
    return rewards


def _unit_key(text):
    return re.sub(r"[\s,]", "", text).rstrip(".").lower()


def quantity_with_unit(completions, answer, **kwargs):
    """The same number and unit; spaces and case do not matter."""
    return [1.0 if _unit_key(text) == _unit_key(gold) else 0.0 for text, gold in zip(_texts(completions), answer)]


def correction_similarity(completions, reference, **kwargs):
    """Full marks above 0.9, as for a human who reads over a missing comma, and partial credit below."""
    rewards = []
    for text, gold in zip(_texts(completions), reference):
        ratio = SequenceMatcher(None, text.strip(), gold).ratio() if len(text) < 500 else 0.0
        rewards.append(1.0 if ratio > 0.9 else 0.5 * ratio)
    return rewards


# ---- Expressions -------------------------------------------------------------------------------------------


def _compute(node, x):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _compute(node.left, x) + _compute(node.right, x)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _compute(node.left, x) * _compute(node.right, x)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id == "x":
        return x
    raise ValueError("only +, *, integers and x")


def passes_the_example(completions, example, **kwargs):
    """The unit test of the row: the expression gives this y for this x."""
    rewards = []
    for text, (x, y) in zip(_texts(completions), example):
        try:
            value = _compute(ast.parse(text.strip(), mode="eval").body, x) if len(text) <= 60 else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            value = None
        rewards.append(1.0 if value == y else 0.0)
    return rewards


# ---- Sources and steps -------------------------------------------------------------------------------------


def cited_answer(completions, answer, notes, **kwargs):
    """One point for the name, and half a point for each note that is cited and exists."""
    rewards = []
    for text, gold, count in zip(_texts(completions), answer, notes):
        name = text.partition("[")[0].strip(" .,\n")
        cited = [int(number) for number in re.findall(r"\[(\d{1,3})\]", text)]
        rewards.append(1.0 * (name == gold) + 0.5 * sum(1 <= number <= count for number in cited))
    return rewards


def reasoning_steps(completions, **kwargs):
    """Three or more steps give full marks, however they are marked."""
    pattern = re.compile(r"Step \d+|^\d+[.)]|^[-*] |\b(?:First|Second|Third|Next|Finally),", re.MULTILINE)
    return [min(1.0, len(pattern.findall(text)) / 3) for text in _texts(completions)]
