"""Lesson 08's formulas and TRL's loss on the same batch of the tiny model, for the lessons on the loss.

The formulas are the lesson's own: the cells tagged `formulas` are executed, so there is no second copy.
"""

import contextlib
import functools
from types import SimpleNamespace

import nbformat
from course import ROOT
from lessons import formulas_of

LESSON = ROOT / "notebooks" / "08_grpo_by_hand.ipynb"
HIGH = 0.28  # unlike the lower epsilon, so that the two cannot be mistaken for each other
SIZE = 4  # completions of a group
CUT_OFF, LONGEST = 17, 20  # tokens: so few that some completions are cut off; the constant of Dr. GRPO


@functools.cache
def source_of_formulas() -> str:
    return formulas_of(nbformat.read(LESSON, as_version=4))


def formulas(source: str) -> SimpleNamespace:
    names = {}
    exec(source, names)
    return SimpleNamespace(**names)


@functools.cache
def lesson() -> SimpleNamespace:
    return formulas(source_of_formulas())


@functools.cache
def tiny():
    """The tiny model with all its weights in fp64, so that only a wrong formula makes a difference."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from grpo_utils import model_path

    path = model_path("tiny-qwen3")
    tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float64), tokenizer


def random_reward(completions, **kwargs) -> list[float]:
    import torch

    return torch.rand(len(completions)).tolist()


def trainer_for(model, parts: int = 1, rewards=random_reward, **changes):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from grpo_utils.arguments import training_arguments
    from grpo_utils.data.sources import addition_rows
    from grpo_utils.profiles import PROFILES

    arguments = dict(epsilon_high=HIGH, num_generations=SIZE, max_completion_length=LONGEST, output_dir="outputs")
    arguments |= dict(per_device_train_batch_size=16 // parts, gradient_accumulation_steps=parts) | changes
    config = GRPOConfig(**training_arguments(PROFILES["cpu"], **arguments))
    return GRPOTrainer(model, rewards, config, Dataset.from_list(addition_rows(40)), processing_class=tiny()[1])


@functools.cache
def sampled() -> dict:
    """Four groups of four, and the log-probabilities as they are."""
    import torch

    from grpo_utils import chat_prompt
    from grpo_utils.data.sources import addition_rows

    prompts = [chat_prompt("What is 7 + 15?"), *(row["prompt"] for row in addition_rows(3))]
    torch.manual_seed(0)
    batch, _ = lesson().sample(*tiny(), prompts, size=SIZE, longest=CUT_OFF)
    batch["logps"] = lesson().token_logps(tiny()[0], batch).detach()
    return batch


def batch_of(off_policy: bool = True, masked: bool = False) -> dict:
    """What TRL's loss is given. Off-policy, the old log-probabilities are far from the present ones."""
    import torch

    batch = dict(sampled())
    logps = batch.pop("logps")
    generator = torch.Generator().manual_seed(1)
    rewards, noise = torch.rand(16, generator=generator), torch.rand(2, *logps.shape, generator=generator) - 0.5
    batch["advantages"] = lesson().advantages_of(rewards, SIZE)
    batch["ref_per_token_logps"] = logps + 2 * noise[0]
    batch["old_per_token_logps"] = logps + 4 * noise[1] if off_policy else logps
    if masked:
        batch["completion_mask"] = batch["completion_mask"] * ended(batch).int().unsqueeze(1)
    batch["num_items_in_batch"] = batch["completion_mask"].sum()
    return batch


def ended(batch: dict):
    """Which completions were not cut off."""
    return (batch["completion_ids"] == tiny()[1].eos_token_id).any(dim=1)


def parts_of(batch: dict, parts: int) -> list[dict]:
    """The batch in parts whose completions differ in length: the longest come last."""
    order = batch["completion_mask"].sum(dim=1).argsort(stable=True)
    pieces = order.chunk(parts)
    return [{name: value[rows] if value.dim() else value for name, value in batch.items()} for rows in pieces]


def gradient(loss):
    import torch

    model = tiny()[0]
    model.zero_grad()
    loss.backward()
    return loss.item(), torch.cat([weight.grad.flatten() for weight in model.parameters()])


def difference(mine, theirs) -> float:
    """The largest one, of the loss and of any entry of the gradient."""
    assert theirs[1].abs().max() > 1e-3  # else a small difference would mean nothing
    return max(abs(mine[0] - theirs[0]), float((mine[1] - theirs[1]).abs().max()))


@contextlib.contextmanager
def weights_kept(model):
    """What happens to the weights and their gradients inside is undone."""
    model.zero_grad()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    yield
    model.load_state_dict(start)
    model.zero_grad()
