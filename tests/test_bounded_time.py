"""No text makes a pattern, an extractor or a reward slow: every one of them is found and timed."""

import ast
import gc
import importlib
import inspect
import os
import pkgutil
import re
import threading
import time
from functools import lru_cache, partial
from pathlib import Path

import bench_rewards
import grpo_core
import hostile
import pytest
from course import ROOT
from grpo_core.rewards import maths

import grpo_check
import grpo_utils
from grpo_utils import rewards

pytestmark = pytest.mark.slow

LENGTH = 1_000  # characters of a run
LENGTHS = (12, 18, 24, 30)  # what is exponential fails at the first of these, and does not hang
LIMIT = 0.02  # seconds of processor time for a completion
COMPARING = 0.25  # seconds where math-verify compares two expressions

FUZZED = int(os.environ.get("HOSTILE_COMPLETIONS", "3000"))  # the full number is 300,000: see `make bench-rewards`


def seconds(task, repeats: int = 3) -> float:
    """Processor time of the fastest of some tries; a first one that is fast is enough."""
    times = []
    for _ in range(repeats):
        started = time.thread_time()
        task()
        times.append(time.thread_time() - started)
        if times[-1] < LIMIT / 4:
            break
    return min(times)


def comparing(said: str, gold: str) -> float:
    """Processor time of a comparison by math-verify; one that is slow is tried again, without the cache."""
    times = []
    for _ in range(3):
        maths._verify.cache_clear()
        started = time.thread_time()
        rewards.same_expression(said, gold)
        times.append(time.thread_time() - started)
        if times[-1] < COMPARING / 2:
            break
    return min(times)


def sources() -> list[Path]:
    """Every file with code of this project that may meet a stranger's text; rewards with faults on purpose may not."""
    folders, faults = ("grpo_utils", "grpo_check/src", "templates", "notebooks/source"), "judging/examples.py"
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in paths if "test_" not in path.name and not str(path).endswith(faults)]


def compiled_patterns() -> dict[str, re.Pattern]:
    """The patterns that the modules of the packages hold: by themselves, in tuples and lists, in classes."""
    found, packages = {}, (grpo_check, grpo_core, grpo_utils)
    for module in (
        one for package in packages for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ):
        if not module.name.endswith("__main__") and ".real.project" not in module.name:
            _collect(vars(importlib.import_module(module.name)), module.name, found)
    return found


def _collect(names: dict, where: str, found: dict) -> None:
    for name, value in names.items():
        for place, item in enumerate(_items(value)):
            if isinstance(item, re.Pattern):
                found[f"{where}.{name}[{place}]"] = item
        if inspect.isclass(value) and value.__module__ == where:
            _collect(vars(value), f"{where}.{name}", found)


def _items(value: object) -> list:
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    return [part for item in value for part in _items(item)] if isinstance(value, list | tuple) else [value]


def written_patterns() -> dict[str, re.Pattern]:
    """The patterns in calls such as ``re.search("…", text)`` and ``re.compile("…")``, in all sources."""
    found = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if (
                is_call
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in ("re", "regex")
                and node.args
            ):
                try:
                    text = _text_of(node.args[0], path)
                except ValueError:
                    continue
                flags = _attributes([*node.args[1:], *node.keywords])
                known = [getattr(re, flag) for flag in flags if isinstance(getattr(re, flag, None), re.RegexFlag)]
                found[f"{path.relative_to(ROOT)}:{node.lineno}:{node.func.attr}"] = re.compile(text, sum(known))
    return found


def _attributes(nodes: list) -> list[str]:
    return [part.attr for node in nodes for part in ast.walk(node) if isinstance(part, ast.Attribute)]


def _text_of(node: ast.expr, path: Path) -> str:
    """A pattern's text: a literal, or an expression of names that the file itself binds to texts."""
    names = _names_of(path)
    try:
        text = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {"sorted": sorted, "len": len}}, names)
    except (NameError, AttributeError, TypeError) as error:
        raise ValueError(path) from error
    if not isinstance(text, str):
        raise ValueError(path)
    return text


@lru_cache
def _names_of(path: Path) -> dict:
    """What a file binds its names to, as far as that takes no imports."""
    names = {}
    for line in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            try:
                code = compile(ast.Expression(line.value), "", "eval")
                names[line.targets[0].id] = eval(code, {"__builtins__": {}}, names)
            except (NameError, AttributeError, TypeError, ValueError, KeyError):
                continue
    return names


PATTERNS = compiled_patterns() | written_patterns()
#: Patterns that never read more than so many characters, whatever the text is.
CAPPED = {
    "grpo_core.training.answers.": 60,
    "grpo_check/src/grpo_core/training/answers.py:": 60,
    "grpo_core.rewards.maths.": 120,
    "grpo_check/src/grpo_core/rewards/maths.py:": 120,
}


def test_patterns_are_found_in_modules_tuples_and_calls():
    names = " ".join(PATTERNS)
    assert "maths.LANGUAGE" in names and "answers.NUMBER" in names and "basic_grpo/rewards.py" in names
    assert "notebooks/source" in names and len(PATTERNS) > 60


def use_of(name: str) -> tuple[re.Pattern, bool, int]:
    """A pattern, whether its call tries it at one place only, and how many characters it may read."""
    anchored = name.endswith((":match", ":fullmatch"))
    return PATTERNS[name], anchored, next((cap for start, cap in CAPPED.items() if name.startswith(start)), LENGTH)


#: By its use, the first name of a pattern: a module and its source show the same one, and so do files of templates.
USES = {use_of(name): name for name in reversed(PATTERNS)}


def _all(use, texts: list[str]) -> None:
    for text in texts:
        use(text)


@pytest.mark.parametrize(("pattern", "anchored", "cap"), USES, ids=USES.values())
def test_no_pattern_takes_more_than_linear_time(pattern, anchored, cap):
    for length in [length for length in LENGTHS if length < cap] + [cap]:
        texts = list(hostile.runs(length))
        for use in [pattern.fullmatch] if anchored else [pattern.fullmatch, pattern.search]:
            if seconds(partial(_all, use, texts)) > LIMIT:  # all of them in the time of one
                slow = [text for text in texts if seconds(partial(use, text)) > LIMIT / 4]
                assert not slow, f"{len(slow)} runs of {length}, such as {slow[0][:12]!r}…{slow[0][-3:]!r}"


COLUMNS = dict(answer="42", solution="42", prompts="q", completion_ids=[0])
EXTRACTORS = [getattr(rewards, name) for name in dir(rewards) if name.startswith(("extract_", "split_", "count_"))]
MADE = [
    rewards.AnswerReward(extract=rewards.extract_boxed, same=rewards.same_fact),
    rewards.AnswerReward(extract=rewards.extract_after_thinking),
    rewards.AnswerReward(extract=rewards.extract_after_hashes),
    rewards.AnswerReward(extract=rewards.extract_all),
]
REWARDS = [getattr(rewards, name) for name in dir(rewards) if name.endswith("_reward")] + MADE


def score(reward, text: str, columns: dict = COLUMNS) -> float | None:
    """What a reward gives for one completion."""
    return reward(completions=[text], **{name: [value] for name, value in columns.items()})[0]


@pytest.mark.parametrize("frame", hostile.FRAMES)
def test_no_run_makes_a_reward_or_an_extractor_slow(frame):
    for text in hostile.runs(20_000):
        framed = frame.format(text)
        for task in [
            *(partial(extract, framed) for extract in EXTRACTORS),
            *(partial(score, r, framed) for r in REWARDS),
        ]:
            assert seconds(task) < LIMIT, (task, framed[:30])


def test_hostile_completions_raise_nothing_and_cost_little():
    for text in hostile.completions(FUZZED, seed=FUZZED):
        for extract in EXTRACTORS:
            assert seconds(partial(extract, text)) < LIMIT, (extract, text)
        for reward in REWARDS:
            assert seconds(partial(score, reward, text)) < LIMIT, (reward, text)


@pytest.mark.parametrize("threaded", [False, True], ids=["main thread", "another thread"])
def test_no_comparison_of_expressions_takes_long_in_any_thread(threaded):
    rewards.same_expression("x", "x+1")  # imports sympy
    gc.collect()
    gc.freeze()  # a pass over all that pytest holds is not part of the cost of an answer
    slow, pairs = [], list(hostile.expression_pairs(max(200, FUZZED // 15), seed=threaded))

    def compare() -> None:
        slow.extend(pair for pair in pairs if comparing(*pair) > COMPARING)

    worker = threading.Thread(target=compare)
    worker.start() if threaded else compare()
    if threaded:
        worker.join()
    gc.unfreeze()
    assert not slow


#: What a simplification or a parser takes long for: many letters, bars or brackets, and deep ones.
SLOW = [
    (r"\frac{(x+y+z+a+b)^4}{(x-y+z-a+b)^4}", "x+y+z+a+b"),
    (r"\frac{1}{x+y}+\frac{1}{y+z}+\frac{1}{z+a}+\frac{1}{a+b}+\frac{1}{b+x}", "x+y+z+a+b"),
    (r"\frac{(x+y+z)^4}{(x-y+z)^4}+\frac{1}{x+y}+\frac{1}{y+z}", "x+y+z"),
    ("|x|" * 12, "x"),
    (r"\sqrt[3]{2+\sqrt{5}}+\sqrt[3]{2-\sqrt{5}}", r"\sqrt{2}"),
    (r"\frac{1}{\sqrt{2}+\sqrt{3}+\sqrt{5}+\sqrt{7}+\sqrt{11}+\sqrt{13}}", r"\sqrt{2}"),
    (r"\frac{x^4-3x^3+2x}{x+1}<\sqrt{x}", "x<3"),
    (r"\{x,2x,3x,4x,5x,6x,7x,8x,9x\}", r"\{x,2x,3x,4x,5x,6x,7x,8x,10x\}"),
    ("[[x]]", "[[x+1]]"),
    *((f"{'(' * depth}x{')' * depth}", "x+7") for depth in (3, 4, 8, 16, 40)),
]


@pytest.mark.parametrize(("said", "gold"), SLOW)
def test_a_slow_comparison_is_refused_or_short(said, gold):
    assert comparing(said, gold) < COMPARING and not rewards.same_expression(said, gold)


def test_the_parsers_tables_are_emptied_when_they_are_full(monkeypatch):
    from latex2sympy2_extended.antlr_parser import PSParser

    assert rewards.same_expression(r"\frac{6}{x}", r"\frac{3}{x}+\frac{3}{x}")
    before = len(PSParser.sharedContextCache)
    monkeypatch.setattr(maths, "MOST_CONTEXTS", 1)
    assert rewards.same_expression("x+3", "3+x") and len(PSParser.sharedContextCache) < before


def test_the_bench_of_rewards_finds_the_probe_that_it_times():
    assert bench_rewards.probe_seconds() > 0
