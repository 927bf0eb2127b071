"""Try the checks on the real model: what they say of 12 configurations, and what training then does.

    python experiments/bench_real_checks.py            run what experiments/bench_real_checks.json lacks: an hour in all
    python experiments/bench_real_checks.py --write    only write the section of docs/results.md

Six of them were chosen to fail before any check saw one. Each gets a preflight and a pilot, is trained for some steps
with `HealthCallback`, and answers held-out prompts greedily before and after. It *learned* if the share of correct
fields rose within these steps, by the paired test and interval. Each runs in a fresh process, so that the peak memory
of its training can be measured. The measurement led to a repair of preflight, so each is also judged by the repaired
one.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import yaml
from bench_estimate import resident
from benches import filled, only_write, provenance, put, read_stored, train_missing
from grpo_check.preflights.estimate import GIB

from grpo_utils import smollm2
from grpo_utils.real.training import PROJECT, SHARED, write_project

STORED, TITLE = Path(__file__).with_suffix(".json"), "The checks on a real model"
STEPS, PROMPTS, HELDOUT = 20, 32, 64
#: Instead of the pilot's verdict, if it did not sample because of an error that preflight finds.
REFUSED = "refused"
LORA = dict(r=16, lora_alpha=32, lora_dropout=0.0)


@dataclass(frozen=True)
class Case:
    """A configuration: what differs from that of `make real`."""

    sound: bool
    changes: dict = field(default_factory=dict)
    rewards: Callable[[dict], dict] = lambda usual: usual
    prompt: Callable[[list[dict]], object] = lambda messages: messages
    task: str = "orders"


def without_correctness(usual: dict) -> dict:
    """Partial credit alone."""
    return {reward: weight for reward, weight in usual.items() if reward.__name__ != "correctness_reward"}


def correctness_alone(usual: dict) -> dict:
    """No partial credit."""
    return {reward: 1.0 for reward in usual if reward.__name__ == "correctness_reward"}


def constant(usual: dict) -> dict:
    """Every completion earns the same."""

    def constant_reward(completions: list, **kwargs: object) -> list[float]:
        return [1.0] * len(completions)

    return {constant_reward: 1.0}


def sign_error(usual: dict) -> dict:
    """Every reward with the wrong sign."""
    return {reward: -weight for reward, weight in usual.items()}


def plain_text(messages: list[dict]) -> str:
    """The prompt without the chat template."""
    return messages[-1]["content"]


#: Written down before any of them ran.
CASES = {
    "as in `make real`": Case(True),
    "groups of 8": Case(True, {"num_generations": 8}),
    "learning rate 4e-4": Case(True, {"learning_rate": 4e-4}),
    "temperature 0.8": Case(True, {"temperature": 0.8}),
    "partial credit alone": Case(True, rewards=without_correctness),
    "the task older": Case(True, task="older"),
    "correctness alone": Case(False, rewards=correctness_alone),
    "constant reward": Case(False, rewards=constant),
    "sign error": Case(False, rewards=sign_error),
    "limit of 16 tokens": Case(False, {"max_completion_length": 16}),
    "learning rate 1e-2": Case(False, {"learning_rate": 1e-2}),
    "prompts as plain text": Case(False, prompt=plain_text),
}


def arguments_of(case: Case, folder: Path, weights: list[float]) -> dict:
    """The arguments of `GRPOConfig`: those of `make real` with the changes of the case."""
    from trl import GRPOConfig

    known = GRPOConfig.__dataclass_fields__
    own = yaml.safe_load((PROJECT / "config.yaml").read_text(encoding="utf-8"))
    usual = {name: value for name, value in own.items() if name in known}
    usual |= dict(output_dir=str(folder), bf16=smollm2.fast_bf16(), max_steps=STEPS, save_strategy="no")
    return usual | dict(reward_weights=weights, disable_tqdm=True) | case.changes


def rows_of(case: Case, count: int, split: str) -> list[dict]:
    from grpo_utils.data.extraction import extraction_rows

    return [row | dict(prompt=case.prompt(row["prompt"])) for row in extraction_rows(case.task, count, split)]


def project_rewards() -> object:
    """The module rewards.py of the project of `make real`."""
    sys.path.insert(0, str(write_project(SHARED / "project")))
    import rewards

    return rewards


def checked(arguments: dict, rows: object, heldout: list[dict], functions: list[Callable]) -> object:
    """The report of a preflight, without a loaded model."""
    from datasets import Dataset
    from transformers import AutoTokenizer

    from grpo_check import preflight

    model = str(smollm2.fetch())
    data = dict(tokenizer=AutoTokenizer.from_pretrained(model), train=rows, heldout=Dataset.from_list(heldout))
    loading = dict(load_in_4bit=False, lora_rank=16, dtype="bfloat16" if arguments["bf16"] else "float32", gpu="cpu")
    return preflight(arguments, model=model, rewards=functions, **data, **loading)


def judge_again(name: str) -> list[str]:
    """The errors that the repaired preflight finds in one configuration."""
    from datasets import Dataset

    case = CASES[name]
    functions = case.rewards(project_rewards().REWARDS)
    arguments = arguments_of(case, SHARED / "checks", list(functions.values()))
    rows = Dataset.from_list(rows_of(case, 2000, "train"))
    return [one.code for one in checked(arguments, rows, rows_of(case, HELDOUT, "test"), list(functions)).errors]


def measure(name: str) -> dict:
    """Check and train one configuration in this process."""
    import torch
    from datasets import Dataset
    from grpo_core.errors import CourseError
    from grpo_core.training.policy import keep_output_layer_uncopied, keep_trainable_fp32, load_with_transformers
    from trl import GRPOConfig, GRPOTrainer

    from grpo_check import HealthCallback, diagnose, pilot

    case, model, project = CASES[name], smollm2.fetch(), project_rewards()
    functions = case.rewards(project.REWARDS)
    arguments = arguments_of(case, SHARED / "checks", list(functions.values()))
    rows, heldout = Dataset.from_list(rows_of(case, 2000, "train")), rows_of(case, HELDOUT, "test")
    baseline = resident("VmRSS")
    dtype = torch.bfloat16 if arguments["bf16"] else torch.float32
    lora = LORA | dict(target_modules="all-linear")
    policy, tokenizer = load_with_transformers(
        str(model), dtype=dtype, load_in_4bit=False, lora=lora, seed=0, device_map="cpu"
    )
    report = checked(arguments, rows, heldout, list(functions))
    keep_output_layer_uncopied(policy)
    config = GRPOConfig(**arguments)
    try:
        look = pilot(policy, tokenizer, list(functions), rows, config=config, prompts=PROMPTS, correct=project.is_right)
        verdict = look.verdict.code
    except CourseError:  # an error of the preflight that it makes first
        verdict = REFUSED
    before = fields_right(policy, tokenizer, heldout, project)
    trainer = GRPOTrainer(
        policy, list(functions), config, rows, processing_class=tokenizer, callbacks=[HealthCallback(stop=False)]
    )
    keep_trainable_fp32(policy)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # reset the peak
    trainer.train()
    peak, log = resident("VmHWM"), trainer.state.log_history
    estimate = report.estimate
    return dict(
        preflight=[one.code for one in report.errors],
        pilot=verdict,
        health=[one.code for one in diagnose(log) if one.severity == "error"],
        before=before,
        after=fields_right(policy, tokenizer, heldout, project),
        gib=(peak - baseline) / GIB,
        estimated_gib=estimate and estimate.memory.gib,
        seconds=median(entry["step_time"] for entry in log if "step_time" in entry),
        estimated_seconds=estimate and estimate.minutes and estimate.minutes.total * 60 / STEPS,
    )


def fields_right(policy: object, tokenizer: object, rows: list[dict], project: object) -> list[float]:
    """The share of correct fields in the greedy answer to each held-out prompt."""
    from grpo_core.training.generating import generate

    prompts = [row["prompt"] for row in rows]
    texts = generate(policy, tokenizer, prompts, max_new_tokens=64, batch_size=64, temperature=0.0, seed=0)
    shares = project.fields_reward(texts, answer=[row["answer"] for row in rows])
    return [round(share, 3) for share in shares]


def apart(name: str, option: str = "--case") -> dict | list:
    """`measure`, or with ``--again`` `judge_again`, in a fresh process."""
    done = subprocess.run([sys.executable, __file__, option, name], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def add_repaired(stored: dict) -> None:
    """Let the repaired preflight judge the configurations that it has not judged yet, and store that."""
    for row in stored["rows"]:
        if "repaired" not in row:
            row["repaired"] = apart(row["name"], "--again")
            STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def learned(row: dict) -> bool:
    """Whether the share of correct fields rose, by the paired test and interval."""
    from grpo_utils import paired_change

    change = paired_change(row["before"], row["after"])
    return change.shown and change.estimate.value > 0


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    rows = stored["rows"]
    sound = sum(CASES[row["name"]].sound for row in rows)
    good, failed = ([row for row in rows if learned(row) == wanted] for wanted in (True, False))
    text = filled(
        "real_checks",
        where=provenance(stored, "two cores"),
        planned=len(CASES),
        sound=sound,
        unsound=len(rows) - sound,
        steps=STEPS,
        heldout=HELDOUT,
        prompts=PROMPTS,
        refused=REFUSED,
        repaired=repair(rows),
        failed=len(failed),
        good=len(good),
        stops="\n".join(stops(check, failed, good) for check in STOPS),
        table="\n".join(map(line, rows)),
        estimated=estimates(rows),
    )
    return f"\n{text}"


def repair(rows: list[dict]) -> str:
    """What the measurement has changed, if the two versions of preflight differ."""
    changed = [row for row in rows if row["preflight"] != row["repaired"]]
    if not changed:
        return ""
    return f"""The first version of `preflight` judged {len(changed)} of them otherwise. It reported `reward_broken`,
because a wrong value earns `keys_reward` as well. Where the weighted sum of all rewards tells right from wrong, that is
partial credit and now a warning. So the column *repaired* is no test of preflight."""


def pilot_stops(row: dict) -> bool:
    """`go` and `partial_credit` let a run start."""
    return row["pilot"] not in ("go", "partial_credit")


#: What stops a run, by check.
STOPS: dict[str, Callable[[dict], bool]] = {
    "preflight": lambda row: bool(row["preflight"]),
    "preflight, repaired": lambda row: bool(row["repaired"]),
    "pilot": pilot_stops,
    "health": lambda row: bool(row["health"]),
    "any of them (repaired)": lambda row: bool(row["repaired"] or row["health"]) or pilot_stops(row),
}


def stops(check: str, failed: list[dict], good: list[dict]) -> str:
    return f"| {check} | {sum(map(STOPS[check], failed))} | {sum(map(STOPS[check], good))} |"


def line(row: dict) -> str:
    """One configuration as a row of the table."""
    rates = f"{fmean(row['before']):.2f} to {fmean(row['after']):.2f}"
    checks = ("preflight", "repaired", "health")
    first, repaired, health = (", ".join(f"`{code}`" for code in dict.fromkeys(row[check])) or "-" for check in checks)
    expected, found = ("yes" if one else "no" for one in (CASES[row["name"]].sound, learned(row)))
    cells = [row["name"], expected, rates, found, first, repaired, f"`{row['pilot']}`", health]
    return f"| {' | '.join(cells)} |"


def estimates(rows: list[dict]) -> str:
    """How far preflight's estimates were off, where it gave one. Rows that shared the machine are marked by hand."""
    memory = [row["estimated_gib"] / row["gib"] for row in rows if row["estimated_gib"]]
    time = [
        row["estimated_seconds"] / row["seconds"] for row in rows if row["estimated_seconds"] and not row.get("busy")
    ]
    return (
        f"Preflight's estimate divided by what was measured: peak memory {spread(memory)}, seconds per step "
        f"{spread(time)}. Runs during which the machine did other work are left out of the seconds."
    )


def spread(ratios: list[float]) -> str:
    """The median of some ratios, and their range."""
    return f"{median(ratios):.2f} in the median of {len(ratios)} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    if "--case" in sys.argv or "--again" in sys.argv:
        print(json.dumps((measure if "--case" in sys.argv else judge_again)(sys.argv[-1])))
        sys.exit()
    if only_write(__doc__):
        stored = read_stored(STORED)
    else:
        stored = train_missing(STORED, [dict(name=name) for name in CASES], apart)
        add_repaired(stored)
    put(TITLE, section(stored))
