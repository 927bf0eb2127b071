"""Compare the verdicts of `pilot` with real training runs, and write them into docs/results.md.

    python experiments/bench_pilot.py           run what is missing, then write the pages
    python experiments/bench_pilot.py --write   only write the pages, from experiments/bench_pilot.json

Each configuration of a tiny model is piloted, then trained for a few steps and evaluated on held-out rows before and
after. A configuration "learned" if its held-out strict accuracy rose with p < 0.05 in the paired test. Strict accuracy
is the true accuracy of the task, whatever the reward of the configuration pays.
"""

import json
import random
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from statistics import median
from textwrap import fill

from benches import ROOT, filled, measured_on, only_write, put, put_in_short, read_stored, versions_text
from grpo_check.findings import Finding
from grpo_check.pilots.figures import Figures, Mean, Rewards, Share, Tokens, figures
from grpo_check.pilots.sampling import Group, forward_seconds, groups, longer
from grpo_check.pilots.verdicts import LIMITS, Basis, Limits, decide
from grpo_check.preflights.planned import plan
from grpo_core.rewards.text import completion_text
from grpo_core.training.generating import generate
from grpo_core.training.measuring import mcnemar_p_value, wilson_interval
from mixture import rows as mixture_rows

from grpo_utils import load_policy, math_rewards, paired_change
from grpo_utils.arguments import training_arguments
from grpo_utils.data.prompts import SYSTEM_PROMPT, chat_prompt
from grpo_utils.data.sources import addition_key, addition_kind
from grpo_utils.data.splits import is_held_out
from grpo_utils.profiles import CPU, prepare_machine
from grpo_utils.rewards import (
    correctness_reward,
    extract_answer,
    incremental_format_reward,
    is_strictly_right,
    strict_format_reward,
)

TITLE, STORED = "How often the pilot is right", Path(__file__).with_suffix(".json")
RAW = ROOT / "outputs" / "bench_pilot.jsonl"
TRAIN, HELDOUT, STEPS, PROMPTS = 2000, 200, 15, 32
SPLIT_SEED, FITTED = 18, 20
MODELS = {"q": "tiny-qwen3", "g": "tiny-gemma3"}

# Rewards. Those that are not in grpo_utils are flawed on purpose, or exact for a task of the tiny models.


def constant(completions: list, **kwargs: object) -> list[float]:
    """Every completion earns the same."""
    return [1.0] * len(completions)


def noise(completions: list, **kwargs: object) -> list[float]:
    """A number that has nothing to do with the answer."""
    return [random.Random(completion_text(one)[::-1]).random() for one in completions]


def reversed_reward(completions: list, answer: list, **kwargs: object) -> list[float]:
    """A sign error: wrong answers earn more."""
    return [1.0 - score for score in correctness_reward(completions, answer)]


def length(completions: list, **kwargs: object) -> list[float]:
    """Longer is better."""
    return [len(completion_text(one)) / 100 for one in completions]


def brevity(completions: list, **kwargs: object) -> list[float]:
    """Shorter is better."""
    return [-len(completion_text(one)) / 100 for one in completions]


def every_tag(completions: list, **kwargs: object) -> list[float]:
    """Each tag pays, as often as it is written."""
    return [len(re.findall(r"</?(?:reasoning|answer)>", completion_text(one))) / 4 for one in completions]


def any_answer(completions: list, **kwargs: object) -> list[float]:
    """An answer in tags earns 1, whatever it is."""
    return [float(extract_answer(completion_text(one)) is not None) for one in completions]


def number_anywhere(completions: list, answer: list, **kwargs: object) -> list[float]:
    """The gold answer anywhere in the text earns 1."""
    return [float(gold in completion_text(one)) for one, gold in zip(completions, answer, strict=True)]


def first_word(completions: list, **kwargs: object) -> list[float]:
    """Asks for a form that the model never writes."""
    return [float(completion_text(one).startswith("Result:")) for one in completions]


def rare_form(completions: list, answer: list, **kwargs: object) -> list[float]:
    """A correct answer in a form that the model never writes."""
    pairs = zip(completions, answer, strict=True)
    return [float(f"\\boxed{{{gold}}}" in completion_text(one)) for one, gold in pairs]


def exact(completions: list, right: list, **kwargs: object) -> list[float]:
    """One of the correct texts of a task of the tiny models."""
    return [float(completion_text(one) in texts) for one, texts in zip(completions, right, strict=True)]


def in_braces(completions: list, **kwargs: object) -> list[float]:
    """Braces around the whole text."""
    return [float(bool(re.fullmatch(r"\{.*\}", completion_text(one)))) for one in completions]


def starts_lambda(completions: list, **kwargs: object) -> list[float]:
    """Partial credit for the first words of a lambda."""
    return [float(completion_text(one).startswith("lambda x:")) for one in completions]


# Rows: training rows, held-out rows, and whether a text answers a row correctly.


def additions(train: bool, low: int = 10, high: int = 99, words: str = "What is {} + {}?", kind: str = "") -> list:
    """Addition problems with numbers of a range, in some words; a small range repeats its few pairs."""
    draw, found = random.Random(int(train)), []
    while len(found) < (TRAIN if train else HELDOUT):
        a, b = draw.randint(low, high), draw.randint(low, high)
        if is_held_out(addition_key(a, b)) != train and kind in ("", addition_kind(a, b)):
            found.append({"prompt": chat_prompt(words.format(a, b), SYSTEM_PROMPT), "answer": str(a + b)})
    return found


def products(train: bool) -> list:
    """Multiplication, which the tiny models never saw."""
    pairs = [(a, b) for a in range(12, 100) for b in range(3, 10) if is_held_out(f"{a} * {b}") != train]
    pairs = random.Random(0).choices(pairs, k=TRAIN if train else HELDOUT)
    return [{"prompt": chat_prompt(f"What is {a} * {b}?", SYSTEM_PROMPT), "answer": str(a * b)} for a, b in pairs]


def wrong_golds(train: bool, share: float) -> list:
    """Addition problems, a share of whose training answers is wrong."""
    draw, found = random.Random(0), additions(train)
    if train:
        for row in found:
            if draw.random() < share:
                row["answer"] = str(int(row["answer"]) + draw.choice([1, 2, 10]))
    return found


def forgotten_carries(train: bool) -> list:
    """Addition problems whose training answers forget the carry, as the base model does."""
    found = additions(train, kind="carry")
    if train:
        for row in found:
            row["answer"] = str(int(row["answer"]) - 10)
    return found


def of_mixture(task: str, as_text: Callable | None = None) -> Callable:
    """Rows of a task of the tiny models, with the texts that are correct."""

    def made(train: bool) -> list:
        some = (one for one in mixture_rows(11, held_out=not train) if one.task == task)
        some = (one for one in some if one.prompt[-1]["role"] == "user")
        some = islice(some, TRAIN if train else HELDOUT)
        return [{"prompt": as_text(one) if as_text else one.prompt, "right": list(one.right)} for one in some]

    return made


def tool_prompt(row: object) -> str:
    """A prompt with a tool as text, since the trainer takes tools only together with functions to call."""
    from transformers import AutoTokenizer

    from grpo_utils import model_path

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    return tokenizer.apply_chat_template(row.prompt, tools=row.tools, add_generation_prompt=True, tokenize=False)


def tool_text(text: str) -> str:
    """What is inside of a tool call."""
    return text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")


def tool_call(completions: list, right: list, **kwargs: object) -> list[float]:
    """The correct call of the calculator."""
    return [float(tool_text(completion_text(one)) in texts) for one, texts in zip(completions, right, strict=True)]


def is_right(text: str, row: dict) -> bool:
    """The true accuracy of a task: of additions strict, of the others one of the correct texts."""
    return is_strictly_right(text, row["answer"]) if "answer" in row else tool_text(text) in row["right"]


MATH = math_rewards()
CORRECT, EXACT = ([correctness_reward], [1.0]), ([exact], [1.0])


@dataclass(frozen=True)
class Case:
    """One configuration: model, rewards with weights, rows, and what differs from the profile ``cpu``."""

    family: str
    rewards: tuple = CORRECT
    rows: Callable = additions
    changes: dict = field(default_factory=dict)
    trained: bool = False  # start from a policy that has learned the addition problems
    eos: str = ""


#: Every configuration. The names say what a person would expect; the runs decide.
CASES = {
    "math rewards": Case("q", MATH),
    "math rewards, Gemma": Case("g", MATH),
    "correctness alone": Case("q"),
    "correctness alone, Gemma": Case("g"),
    "format alone": Case("q", ([strict_format_reward], [1.0])),
    "tags once, partial credit": Case("g", ([incremental_format_reward], [1.0])),
    "gold anywhere in the text": Case("q", ([number_anywhere], [1.0])),
    "any answer in tags": Case("g", ([any_answer], [1.0])),
    "constant reward": Case("q", ([constant], [1.0])),
    "constant reward, Gemma": Case("g", ([constant], [1.0])),
    "noise as reward": Case("q", ([noise], [1.0])),
    "noise and some correctness": Case("g", ([noise, correctness_reward], [1.0, 0.3])),
    "sign error": Case("q", ([reversed_reward], [1.0])),
    "longer is better": Case("q", ([length], [1.0])),
    "shorter is better": Case("g", ([brevity], [1.0])),
    "every tag pays": Case("q", ([every_tag], [1.0])),
    "every tag pays, Gemma": Case("g", ([every_tag], [1.0])),
    "every tag, and correctness": Case("q", ([every_tag, correctness_reward], [1.0, 2.0])),
    "gold answers forget the carry": Case("q", CORRECT, forgotten_carries),
    "half of the golds wrong": Case("q", CORRECT, lambda train: wrong_golds(train, 0.5)),
    "9 of 10 golds wrong": Case("g", CORRECT, lambda train: wrong_golds(train, 0.9)),
    "limit of 8 tokens": Case("q", MATH, changes={"max_completion_length": 8}),
    "limit of 16 tokens": Case("g", MATH, changes={"max_completion_length": 16}),
    "limit of 20 tokens": Case("q", MATH, changes={"max_completion_length": 20}),
    "limit of 24 tokens": Case("g", changes={"max_completion_length": 24}),
    "limit of 100 tokens": Case("q", MATH, changes={"max_completion_length": 100}),
    "wrong EOS": Case("q", MATH, eos="<|endoftext|>"),
    "wrong EOS, Gemma": Case("g", eos="<bos>"),
    "three digits": Case("q", CORRECT, lambda train: additions(train, 100, 999)),
    "three digits, Gemma": Case("g", CORRECT, lambda train: additions(train, 100, 999)),
    "three digits, math rewards": Case("q", MATH, lambda train: additions(train, 100, 999)),
    "two and three digits": Case("g", MATH, lambda train: additions(train, 10, 140)),
    "one digit": Case("q", CORRECT, lambda train: additions(train, 1, 9)),
    "carries only": Case("q", CORRECT, lambda train: additions(train, kind="carry")),
    "no carries": Case("g", CORRECT, lambda train: additions(train, kind="no carry")),
    "'Compute 1 + 2.'": Case("q", CORRECT, lambda train: additions(train, words="Compute {} + {}.")),
    "'the sum of'": Case("g", MATH, lambda train: additions(train, words="What is the sum of {} and {}?")),
    "multiplication": Case("q", CORRECT, products),
    "multiplication, math rewards": Case("g", MATH, products),
    "form never written": Case("q", ([first_word], [1.0])),
    "boxed, never written": Case("g", ([rare_form], [1.0])),
    "learned before": Case("q", trained=True),
    "learned before, math rewards": Case("g", MATH, trained=True),
    "learned before, carries only": Case("q", CORRECT, lambda train: additions(train, kind="carry"), trained=True),
    "groups of 2": Case("q", changes={"num_generations": 2}),
    "groups of 2, math rewards": Case("g", MATH, changes={"num_generations": 2}),
    "groups of 4": Case("g", changes={"num_generations": 4}),
    "groups of 16": Case("q", changes={"num_generations": 16}),
    "temperature 0.1": Case("q", changes={"temperature": 0.1}),
    "temperature 0.5": Case("g", changes={"temperature": 0.5}),
    "temperature 1.5": Case("q", MATH, changes={"temperature": 1.5}),
    "JSON": Case("q", EXACT, of_mixture("json")),
    "JSON, Gemma": Case("g", EXACT, of_mixture("json")),
    "anything in braces": Case("q", ([in_braces], [1.0]), of_mixture("json")),
    "JSON, temperature 0.3": Case("g", EXACT, of_mixture("json"), {"temperature": 0.3}),
    "lambda": Case("q", EXACT, of_mixture("lambda")),
    "lambda, partial credit": Case("g", ([exact, starts_lambda], [1.0, 0.5]), of_mixture("lambda")),
    "tool call": Case("q", ([tool_call], [1.0]), of_mixture("tool", tool_prompt)),
    "facts": Case("q", EXACT, of_mixture("fact")),
    "facts, longer is better": Case("g", ([length], [1.0]), of_mixture("fact")),
    "learning rate 1e-6": Case("q", MATH, changes={"learning_rate": 1e-6}),
    "learning rate 0.1": Case("g", MATH, changes={"learning_rate": 0.1}),
}


def policy_of(case: Case) -> tuple:
    """The policy of a case and its tokenizer; one that has learned is trained once per family."""
    policy, tokenizer = load_policy(MODELS[case.family], profile=CPU, backend="transformers", load_in_4bit=False)
    if case.trained:
        train(policy, tokenizer, Case(case.family, MATH), steps=40)
    if case.eos:
        tokenizer.eos_token = case.eos
    return policy, tokenizer


def arguments_of(case: Case, steps: int = STEPS) -> dict:
    """The arguments of `GRPOConfig` for a case."""
    how = dict(output_dir="unused", max_steps=steps, lr_scheduler_type="constant", reward_weights=case.rewards[1])
    return training_arguments(CPU, **how | case.changes)


def train(policy: object, tokenizer: object, case: Case, steps: int = STEPS) -> float:
    """Train a policy; the seconds that took."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**arguments_of(case, steps)),
        train_dataset=Dataset.from_list(case.rows(True)),
        reward_funcs=list(case.rewards[0]),
    )
    started = time.perf_counter()
    trainer.train()
    return time.perf_counter() - started


def accuracy(policy: object, tokenizer: object, rows: list, limit: int) -> list[bool]:
    """Whether each held-out row is answered correctly, sampled at temperature 1 with the limit of the run."""
    texts = generate(policy, tokenizer, [row["prompt"] for row in rows], max_new_tokens=limit)
    return [is_right(text, row) for text, row in zip(texts, rows, strict=True)]


def measure(name: str) -> dict:
    """Pilot, train and evaluate one case. The raw figures are enough to fit thresholds without sampling again."""
    case, started = CASES[name], time.perf_counter()
    policy, tokenizer = policy_of(case)
    rows, heldout, arguments = case.rows(True), case.rows(False), arguments_of(case)
    run = plan(arguments, CPU, tokenizer=tokenizer, train=rows, rewards=case.rewards[0], try_rewards=False)
    chosen = random.Random(0).sample(rows, PROMPTS)
    sampled = list(groups(run, policy, chosen, 0))
    cut = [one for one in sampled if not all(one.ended)]
    raw = dict(
        name=name,
        groups=[raw_of(one) for one in sampled],
        longer=longer(run, policy, cut) if len(cut) > 3 else [],
        forward=forward_seconds(run, policy, sampled),
    )
    before = accuracy(policy, tokenizer, heldout, arguments["max_completion_length"])
    seconds = train(policy, tokenizer, case)
    after = accuracy(policy, tokenizer, heldout, arguments["max_completion_length"])
    found = dict(before=sum(before), after=sum(after), n=len(before), training_seconds=round(seconds, 2))
    found |= dict(p=paired_change(before, after).p_value, seconds=round(time.perf_counter() - started, 1))
    return raw | found


def raw_of(one: Group) -> dict:
    """What a group's figures depend on."""
    right = [int(is_right(text, one.row)) for text in one.texts]
    formed = [int(split) for split in strict_format_reward(one.texts)]
    return dict(
        scores=one.scores, right=right, formed=formed, ended=[int(e) for e in one.ended],
        lengths=one.lengths, seconds=one.seconds, first=one.texts[0],
    )  # fmt: skip


def run_missing() -> None:
    """Measure every case that has no line in the raw file yet, those that the thresholds are fitted on first."""
    RAW.parent.mkdir(exist_ok=True)
    for name in sorted(CASES, key=lambda name: name not in fitting_half()):
        if name in {row["name"] for row in raw_rows()}:
            continue
        found = measure(name)
        with RAW.open("a", encoding="utf-8") as raw:
            raw.write(json.dumps(found) + "\n")
        change = f"{found['before']} -> {found['after']} of {found['n']}, p = {found['p']:.2g}"
        print(f"{name}: {change}, {found['seconds']} s", flush=True)


KEPT = ("scores", "lengths", "ended", "seconds", "right", "formed")


def raw_rows() -> list[dict]:
    return [json.loads(line) for line in RAW.read_text(encoding="utf-8").splitlines()] if RAW.exists() else []


def stored_row(raw: dict) -> dict:
    """What a verdict and the page depend on, from a raw line."""
    case = CASES[raw["name"]]
    some = [
        Group(
            one["scores"], one["lengths"], one["ended"], tuple(one["seconds"]), right=one["right"], formed=one["formed"]
        )
        for one in raw["groups"]
    ]
    run = plan(arguments_of(case), CPU, train=[{}] * TRAIN, rewards=case.rewards[0])
    seen = {name: raw[name] for name in ("name", "before", "after", "n", "p", "training_seconds", "longer")}
    found = json.dumps(asdict(figures(run, some, raw["forward"])))
    return seen | dict(figures=json.loads(found, parse_float=lambda text: round(float(text), 4)))


def figures_of(row: dict) -> Figures:
    """The stored figures of a row."""
    named = row["figures"]
    read = {name: Share(tuple(one["of_prompts"])) for name, one in named.items() if isinstance(one, dict)}
    read |= {name: Mean(*named[name]) if named.get(name) else None for name in ("pull", "ending")}
    read |= dict(reward=Rewards(*named["reward"]), tokens=Tokens(*named["tokens"]))
    return Figures(**named | read)


# The thresholds are fitted on the first half, and evaluated on the other one.

GRID = dict(
    truncated=(0.25, 0.5, 0.75, 0.9),
    tied=(0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    pull=(0.0, 0.25, 0.5, 0.75),
    rare=(0.0, 0.005, 0.01, 0.02, 0.05),
    done=(0.8, 0.9, 0.95),
)
START = Limits(truncated=0.5, tied=0.9, pull=0.0, rare=0.0, done=0.95)


def fitting_half() -> set[str]:
    """The configurations on which the thresholds are fitted, drawn before any result was known."""
    return set(random.Random(SPLIT_SEED).sample(list(CASES), FITTED))


def learned(row: dict) -> bool:
    """Whether the held-out strict accuracy rose."""
    return row["p"] < 0.05 and row["after"] > row["before"]


def verdict(row: dict, limits: Limits = LIMITS, known: bool = True) -> Finding:
    """The verdict on a row; with ``known=False`` as if nothing told which completions are correct."""
    seen = figures_of(row)
    seen = seen if known else replace(seen, right=None, formed=None, pull=None)
    temperature = CASES[row["name"]].changes.get("temperature", 1.0)
    return decide(Basis(seen, [tuple(one) for one in row["longer"]], temperature, limits=limits))


def hits(rows: list[dict], limits: Limits = LIMITS, known: bool = True) -> list[bool]:
    """Whether each call was right: go and learned, or not go and not learned."""
    return [(verdict(row, limits, known).code == "go") == learned(row) for row in rows]


def fitted(rows: list[dict]) -> Limits:
    """The thresholds with the most right calls; of equals, the one with the fewest changes from the start."""
    grid = [Limits(*values) for values in product(*GRID.values())]
    return max(grid, key=lambda one: (sum(hits(rows, one)), -sum(a != b for a, b in zip(one, START, strict=True))))


# The page


def line(row: dict) -> str:
    """A row of the page's tables."""
    seen, said = figures_of(row), verdict(row)
    family = "Gemma" if CASES[row["name"]].family == "g" else "Qwen"
    shares = (f"{share.value:.0%}" for share in (seen.tied, seen.truncated, seen.right))
    cells = [
        f"{row['name'].removesuffix(', Gemma')}, {family}",
        *shares,
        f"{seen.pull.value:+.2f}" if seen.pull else "-",
        f"`{said.code}`",
        f"{row['before'] / row['n']:.2f} to {row['after'] / row['n']:.2f}",
        "yes" if learned(row) else "no",
        "" if (said.code == "go") == learned(row) else "**wrong**",
    ]
    return f"| {' | '.join(cells)} |"


def rate(calls: list[bool]) -> str:
    """Right calls with their interval."""
    low, high = wilson_interval(sum(calls), len(calls))
    return f"{sum(calls)} of {len(calls)} ({sum(calls) / len(calls):.0%}, 95% interval {low:.0%} to {high:.0%})"


def halves(stored: dict) -> tuple[list[dict], list[dict]]:
    """The rows on which the thresholds were fitted, and the others."""
    half = fitting_half()
    first, second = ([row for row in stored["rows"] if (row["name"] in half) == wanted] for wanted in (True, False))
    return first, second


def in_short(stored: dict) -> str:
    """The result in two sentences."""
    _, rows = halves(stored)
    calls, truth = hits(rows), [learned(row) for row in rows]
    wrong = [not t for call, t in zip(calls, truth, strict=True) if not call]  # whether it should have been stopped
    dull, good = truth.count(False), truth.count(True)
    return fill(
        f"On {len(rows)} configurations of tiny models that were not used for fitting, the pilot's verdict was right "
        f"for {rate(calls)}; *always go* would have been right for {rate(truth)}. The pilot "
        f"stopped {dull - wrong.count(True)} of the {dull} that did not learn, and {wrong.count(False)} of the {good} "
        "that did.",
        120,
    )


def section(stored: dict) -> str:
    """The section of the results."""
    rows, (first, second) = stored["rows"], halves(stored)
    calls, truth = hits(second), [learned(row) for row in second]
    went = [verdict(row).code == "go" for row in second]
    went_good, went_dull = (sum(g and t == good for g, t in zip(went, truth, strict=True)) for good in (True, False))
    good, dull, p = truth.count(True), truth.count(False), mcnemar_p_value(truth, calls)
    ratios = sorted(STEPS * sum(figures_of(row).seconds) / row["training_seconds"] for row in rows)
    text = filled(
        "pilot",
        date=stored["date"],
        processor=stored["processor"],
        versions=versions_text(stored["versions"]),
        total=len(rows),
        prompts=PROMPTS,
        steps=STEPS,
        heldout=HELDOUT,
        planned=len(CASES),
        split_seed=SPLIT_SEED,
        fitted_on=len(first),
        fitted_right=sum(hits(first)),
        others=len(second),
        by_pilot=rate(calls),
        by_unknown=rate(hits(second, known=False)),
        by_going=rate(truth),
        by_never=rate([not one for one in truth]),
        good=good,
        went_good=went_good,
        stopped_good=good - went_good,
        dull=dull,
        went_dull=went_dull,
        stopped_dull=dull - went_dull,
        compared="higher" if p < 0.05 else "not shown to be higher",
        p=p,
        table="\n".join(map(line, second)),
        fitted_table="\n".join(map(line, first)),
        middle=median(ratios),
        least=ratios[0],
        most=ratios[-1],
        inside=sum(0.5 <= one <= 2 for one in ratios),
    )
    return f"\n{text}"


def main() -> None:
    """Measure what is missing unless told only to write, fit the thresholds, and write the figures and the pages."""
    prepare_machine(CPU)
    if not only_write(__doc__):
        run_missing()
        by_name = {row["name"]: stored_row(row) for row in raw_rows()}
        stored = measured_on() | dict(rows=[by_name[name] for name in CASES if name in by_name])
        STORED.write_text(json.dumps(stored) + "\n")
    stored = read_stored(STORED)
    best = fitted([row for row in stored["rows"] if row["name"] in fitting_half()])
    if best != LIMITS:
        sys.exit(f"Error: the fit gives {best}; write it into pilots/verdicts.py and run again with --write.")
    put(TITLE, section(stored))
    put_in_short("pilot", in_short(stored))


if __name__ == "__main__":
    main()
