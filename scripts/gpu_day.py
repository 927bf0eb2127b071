"""Measure on a GPU what no CPU can show, in steps of at most ten minutes without a network: `make gpu-day`.

    python scripts/gpu_day.py                      all steps; the same command continues where it stopped
    python scripts/gpu_day.py lesson stock         only these steps, where one command may take ten minutes only
    python scripts/gpu_day.py --card t4 lesson     try steps on a simulated card, with tiny models and sizes

Results are in outputs/gpu-day/CARD: STEP/log.txt has what a step's processes printed, STEP/result.json its figures, and
results.md the table of all steps. A step that failed runs again.

Lessons find tiny models and addition problems in place of the hub's models and of GSM8K. The real model is SmolLM2.
Fetch it before (`python -m grpo_utils.smollm2`), or set GRPO_MODELS to the folder that contains it.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

import psutil
import torch

sys.path.insert(0, str(Path(__file__).parent / "gpu_path"))
from grpo_core.errors import CourseError
from grpo_core.training.measuring import versions
from machine import CARDS, OVERLAY, machine, without_network
from transformers import AutoModelForCausalLM, AutoTokenizer, Gemma3TextConfig, Qwen2Config

from grpo_utils import smollm2
from grpo_utils.models import model_path
from grpo_utils.real.training import write_project

HERE = Path(__file__).parent
ROOT, OUTPUTS = HERE.parent, Path("outputs/gpu-day")
LONGEST_STEP = 540  # seconds; imports and the models with random weights take most of the last minute
T4_GIB = 14.0  # what a T4 has for torch's tensors: 14.6 GiB less CUDA's own context
STEPS_OF_CELLS = HERE / "gpu_path" / "steps.py"
LESSON = ROOT / "notebooks" / "03_grpo_lora.ipynb"
#: What a step may raise: a process that failed or took too long, a report without the figures, no memory. None of them
#: may stop the other steps.
FAILURES = (subprocess.SubprocessError, psutil.Error, CourseError, OSError)
FAILURES += (ValueError, LookupError, ArithmeticError, RuntimeError, ImportError)
#: What `stock` compares. With bf16 units, Unsloth computes in bf16 also if told fp32.
STOCK_WITH_BF16 = {
    "Qwen bf16": dict(dtype="bfloat16"),
    "Qwen bf16 in 4 bits": dict(dtype="bfloat16", load_in_4bit=True),
    "Qwen fp16": dict(dtype="float16"),
    "Qwen fp16 in 4 bits": dict(dtype="float16", load_in_4bit=True),
    "Gemma bf16": dict(dtype="bfloat16", family="gemma"),
}
STOCK_WITHOUT_BF16 = {
    "Qwen fp32": dict(dtype="float32"),
    "Qwen fp16": dict(dtype="float16"),
    "Qwen fp16 in 4 bits": dict(dtype="float16", load_in_4bit=True),
    "Gemma fp32": dict(dtype="float32", family="gemma"),
}
#: Qwen2.5-1.5B and Gemma 3 1B, from their config.json.
QWEN = dict(hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2)
QWEN |= dict(intermediate_size=8960, vocab_size=151936, tie_word_embeddings=True)
GEMMA = dict(hidden_size=1152, num_hidden_layers=26, num_attention_heads=4, num_key_value_heads=1, head_dim=256)
GEMMA |= dict(intermediate_size=6912, vocab_size=262144, sliding_window=512, tie_word_embeddings=True)
#: The sizes for a simulated card, which computes on a CPU.
TINY = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=16)
TINY |= dict(intermediate_size=128, vocab_size=512)


class Step:
    """The folder, the environment and the processes of one step."""

    def __init__(self, folder: Path, card: str):
        self.folder, self.card = folder.resolve(), card
        shutil.rmtree(self.folder, ignore_errors=True)  # an interrupted step begins again
        self.folder.mkdir(parents=True)
        self.until = time.monotonic() + LONGEST_STEP
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
        self.real = without_network(self.folder / "real") | {"CUDA_VISIBLE_DEVICES": first}
        self.environment = machine(self.folder / "simulated", card) if card else self.real
        self.has_bf16 = CARDS[card].has_bf16 if card else torch.cuda.is_bf16_supported(including_emulation=False)

    def python(self, *command: object, environment: dict | None = None, **variables: str) -> None:
        """Run Python in the step's folder until the step's time is over; its output goes to the log.

        Raises:
            subprocess.CalledProcessError, psutil.TimeoutExpired: it failed, or took too long.
        """
        command = [sys.executable, *map(str, command)]
        with (self.folder / "log.txt").open("a", encoding="utf-8") as log:
            process = psutil.Popen(
                command, cwd=self.folder, env=(environment or self.environment) | variables, stdout=log, stderr=log
            )
            try:
                code = process.wait(timeout=max(1, self.until - time.monotonic()))
            finally:
                end(process)
        if code:
            raise subprocess.CalledProcessError(code, command)

    def cells(self, name: str, environment: dict | None = None, **settings: object) -> dict:
        """A few steps of lesson 03's cells with these settings."""
        out = self.folder / f"{name}.json"
        self.python(STEPS_OF_CELLS, out, json.dumps(settings), environment=environment)
        return json.loads(out.read_text(encoding="utf-8"))


def end(process: psutil.Popen) -> None:
    """End a process and all that it started, such as a notebook's kernel, which would keep the GPU's memory."""
    if process.is_running():
        started = [*process.children(recursive=True), process]
        for each in started:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(started, timeout=10)  # only then is the card's memory free


def pace(log: list[dict]) -> float:
    """The median seconds per step after the first, which compiles."""
    return round(median([entry["step_time"] for entry in log if "step_time" in entry][1:]), 2)


def from_report(folder: Path) -> dict:
    """The figures of a run that a GPU decides, from its report and its last checkpoint."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    states = sorted(folder.rglob("trainer_state.json"), key=lambda path: path.stat().st_mtime)
    log = json.loads(states[-1].read_text(encoding="utf-8"))["log_history"]
    peak = (report["machine"]["gpu"] or {}).get("peak_gib")
    found = {name: report[name]["greedy_accuracy"] for name in ("before", "after")}
    rates = {f"greedy {name}": rate for name, rate in found.items()} | {"minutes of training": minutes_of(report)}
    return {"seconds per step": pace(log), "peak GiB": peak, "bits": 4 if report["load_in_4bit"] else 16} | rates


def minutes_of(report: dict) -> float:
    return round(report["train_seconds"] / 60, 1)


def lesson(step: Step) -> dict:
    """Lesson 03 with the tiny model, from its settings to the merged model."""
    steps = 3 if step.card else 10
    step.python("-m", "grpo_utils", "run", LESSON, "-p", "STEPS", steps, "-p", "EVAL_ROWS", 16)
    report = json.loads((step.folder / "outputs/run/report.json").read_text(encoding="utf-8"))
    return from_report(step.folder / "outputs/run") | {"merge difference": report["merge_difference"]}


def stock(step: Step) -> dict:
    """Three steps of lesson 03's cells with Unsloth, and with stock TRL on the same samples."""
    cases = STOCK_WITH_BF16 if step.has_bf16 else STOCK_WITHOUT_BF16
    # A simulated card runs the first case: `make gpu-path` runs the others.
    some = list(cases.items())[: 1 if step.card else None]
    return {f"gradient norm of Unsloth by that of TRL, {name}": ratios(step, name, settings) for name, settings in some}


def ratios(step: Step, name: str, settings: dict) -> list[float | None]:
    """The gradient norms of Unsloth by those of stock TRL, which gets the samples of Unsloth's run."""
    made, environment = name.replace(" ", "-"), step.environment | {"GPU_PATH_BACKEND": "unsloth"}
    ours = step.cells(f"{made}-with-unsloth", environment, **settings)
    replay = str(step.folder / f"{made}-with-unsloth.json")
    environment = step.real | {"GPU_PATH_BACKEND": "transformers"}
    theirs = step.cells(f"{made}-with-trl", environment, replay=replay, **settings)
    pairs = zip(gradients(ours), gradients(theirs), strict=True)
    return [round(a / b, 4) if b else None for a, b in pairs]


def gradients(result: dict) -> list[float]:
    """The gradient norm of each step."""
    return [entry["grad_norm"] for entry in result["log"] if "grad_norm" in entry]


def hour(step: Step) -> dict:
    """Lesson 05's training as on a T4: SmolLM2 in fp32 for 70 steps or 5 minutes, in a T4's memory.

    A card with bf16 units is told that it has none.
    """
    start = HERE / "gpu_path" / ("start.py" if step.card else "without_bf16.py")
    return orders(step, False, {"bf16": False, "max_minutes": 5}, start, 70, 40)


def smollm2_in_4_bits(step: Step) -> dict:
    """Ten steps of `make real` on the GPU, with the base model in 4 bits."""
    return orders(step, True, *usual(step))


def smollm2_in_16_bits(step: Step) -> dict:
    """Ten steps of `make real` on the GPU, with the base model in 16 bits."""
    return orders(step, False, *usual(step))


def usual(step: Step) -> tuple[dict, Path | None]:
    """The number format of `make real` on this card, and what starts a process on a simulated one."""
    return {"bf16": step.has_bf16}, HERE / "gpu_path" / "start.py" if step.card else None


def orders(step: Step, four_bits: bool, how: dict, start: Path | None, steps: int = 10, rows: int = 16) -> dict:
    """The template structured_output with the task of `make real`; on a simulated card with the tiny model.

    ``how`` has further settings, and ``start`` is a script that starts train.py.
    """
    write_project(step.folder)
    switches = {"use_cpu": False, "load_in_4bit": four_bits} | how
    given = {name: json.dumps(value) for name, value in switches.items()} | {"eval_rows": rows, "output_dir": "run"}
    if step.card:
        given |= {"model_name_or_path": model_path("tiny-qwen3"), "max_steps": 2, "max_prompt_tokens": 256}
    else:
        given |= {"model_name_or_path": smollm2.fetch().resolve(), "max_steps": steps}
    options = [part for name, value in given.items() for part in (f"--{name}", value)]
    environment = step.environment if step.card else step.environment | capped(step)
    step.python(*filter(None, [start]), "train.py", "--config", "config.yaml", *options, environment=environment)
    return from_report(step.folder / "run")


def qwen_on_a_t4(step: Step) -> dict:
    """Two steps of the T4 profile with random weights in the size of Qwen2.5-1.5B, in the memory of a T4."""
    return profile_t4(step, "qwen", Qwen2Config, QWEN, "tiny-qwen3", "float16")


def gemma_on_a_t4(step: Step) -> dict:
    """Two steps of the T4 profile with random weights in the size of Gemma 3 1B, in the memory of a T4.

    On a card with bf16 units, Unsloth takes the way that it takes on a T4 (fp16 products, the rest fp32) only if it is
    told fp16.
    """
    dtype = "float16" if step.has_bf16 and not step.card else "float32"
    return profile_t4(step, "gemma", Gemma3TextConfig, GEMMA, "tiny-gemma3", dtype)


def profile_t4(step: Step, family: str, config: type, sizes: dict, tokenizer: str, dtype: str) -> dict:
    """Nearly all completions reach the profile's limit of tokens; prompts are shorter than GSM8K's."""
    made = write_random(step.folder / f"{family}-random", config(**sizes | (TINY if step.card else {})), tokenizer)
    memory = {} if step.card else capped(step)
    environment = step.environment | memory | {"GPU_PATH_BACKEND": "unsloth"}
    result = step.cells(family, environment, family=family, model=str(made), dtype=dtype, load_in_4bit=True, steps=2)
    lengths = [entry["completions/mean_length"] for entry in result["log"] if "completions/mean_length" in entry]
    figures = {"seconds per step": pace(result["log"]), "peak GiB": round(result["peak_gib"], 2)}
    return figures | {"mean tokens": round(sum(lengths) / len(lengths)), "asked dtype": dtype}


def write_random(folder: Path, config: object, tokenizer: str) -> Path:
    """A model with random weights in fp16, and the tiny model's tokenizer."""
    AutoModelForCausalLM.from_config(config, dtype=torch.float16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(model_path(tokenizer)).save_pretrained(folder)
    return folder


def capped(step: Step) -> dict[str, str]:
    """The setting of torch's allocator that leaves a process no more memory than a T4 has; checked in a process."""
    share = min(1, T4_GIB * 2**30 / torch.cuda.get_device_properties(0).total_memory)
    text = f"expandable_segments:True,per_process_memory_fraction:{share:.4f}"
    setting = {"PYTORCH_ALLOC_CONF": text, "PYTORCH_CUDA_ALLOC_CONF": text}  # torch reads the second one first
    check = f"import torch; assert abs(torch.cuda.get_per_process_memory_fraction() - {share:.4f}) < 1e-3"
    step.python("-c", check, environment=step.environment | setting)
    return setting


STEPS = {
    "hour": hour,
    "t4-qwen": qwen_on_a_t4,
    "lesson": lesson,
    "stock": stock,
    "smollm2-4bit": smollm2_in_4_bits,
    "smollm2-16bit": smollm2_in_16_bits,
    "t4-gemma": gemma_on_a_t4,
}


def run_step(name: str, kept: Path, card: str) -> bool:
    """Run a step unless its result is kept; whether there is a result."""
    if (kept / "result.json").exists():
        print(f"{name}: kept in {kept}")
        return True
    print(f"{name}: {STEPS[name].__doc__.splitlines()[0]}", flush=True)
    started = time.monotonic()
    try:
        figures = STEPS[name](Step(kept, card)) | {"seconds of the step": round(time.monotonic() - started)}
        packages = versions()
    except FAILURES as error:
        print(f"  failed: {type(error).__name__}: {str(error)[-200:]}; see {kept / 'log.txt'}")
        return False
    text = json.dumps({"figures": figures, "versions": packages}, indent=1)
    (kept / "result.json").write_text(text + "\n", encoding="utf-8")
    print(f"  {listed(figures)}")
    return True


def listed(figures: dict) -> str:
    return ", ".join(f"{name}: {value}" for name, value in figures.items())


def table(name: str, folder: Path) -> str:
    """The results so far, each with the versions that it was measured with."""
    kept = {step: folder / step / "result.json" for step in STEPS}
    found = {step: json.loads(path.read_text(encoding="utf-8")) for step, path in kept.items() if path.exists()}
    rows = [f"| `{step}` | {listed(one['figures'])} | {listed(one['versions'])} |" for step, one in found.items()]
    return "\n".join([f"{name}:", "", "| step | result | versions |", "|---|---|---|", *rows, ""])


def known_step(name: str) -> str:
    """A step's name; argparse's own ``choices`` refuses that no name is given."""
    if name not in STEPS:
        raise argparse.ArgumentTypeError(f"{name!r} is no step; choose from {', '.join(STEPS)}")
    return name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", type=known_step, help=f"only these steps: {', '.join(STEPS)}")
    parser.add_argument("--card", choices=CARDS, help="simulate this card on a CPU")
    given = parser.parse_args()
    if not given.card and not torch.cuda.is_available():
        raise CourseError(
            "torch finds no NVIDIA GPU. To try the steps without one: python scripts/gpu_day.py --card t4"
        )
    if given.card and not OVERLAY.is_dir():
        raise CourseError("a simulated card needs Triton in .gpu-path. Run: make .gpu-path/installed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a step's processes end, too
    name = f"simulated {given.card}" if given.card else torch.cuda.get_device_name()
    folder = OUTPUTS / re.sub(r"\W+", "-", name.lower())
    done = []
    for step in given.steps or STEPS:
        done.append(run_step(step, folder / step, given.card or ""))
        (folder / "results.md").write_text(table(name, folder), encoding="utf-8")
    print(f"written: {folder / 'results.md'}")
    sys.exit(not all(done))


if __name__ == "__main__":
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    try:
        main()
    except CourseError as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("Stopped. The same command continues with the step that was stopped.")
