"""Lesson 08: its formulas are TRL's, a changed formula is found, and it runs as readers run it.

The formulas are the lesson's own: the cells tagged `formulas` are executed here, so there is no second copy.
"""

import contextlib
import functools
import re
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "08_grpo_by_hand.ipynb"
KINDS = ("grpo", "bnpo", "dapo", "dr_grpo", "cispo")
LOW, SIZE = 0.2, 4  # epsilon; completions of a group
CUT_OFF, LONGEST = 17, 20  # tokens: so few that some completions are cut off; the constant of dr_grpo
VERDICTS = (
    "mean probability above 0.5",
    "without the filler the same",
    "clipped on both sides",
    "equal to 1e-5",
    "lines, under 80",
    "improvement shown",
    "some clipped at the eighth",
    "without a clip it moves further",
)


def source_of_formulas() -> str:
    cells = nbformat.read(LESSON, as_version=4).cells
    return "\n\n\n".join(cell.source for cell in cells if "formulas" in cell.metadata.get("tags", []))


def formulas(source: str) -> SimpleNamespace:
    names = {}
    exec(source, names)
    return SimpleNamespace(**names)


@functools.cache
def lesson() -> SimpleNamespace:
    return formulas(source_of_formulas())


def high(kind: str) -> float:
    """Unlike `LOW`, so that the two cannot be mistaken for each other; for cispo the cap, which some ratios exceed."""
    return 5.0 if kind == "cispo" else 0.28


# The two sides of the comparison


@functools.cache
def tiny():
    """The tiny model with all its weights in fp64, so that only a wrong formula makes a difference."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from grpo_utils import model_path

    path = model_path("tiny-qwen3")
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float64), AutoTokenizer.from_pretrained(path)


def random_reward(completions, **kwargs) -> list[float]:
    import torch

    return torch.rand(len(completions)).tolist()


def trainer_for(model, kind: str, beta: float, parts: int, **changes):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from grpo_utils import PROFILES, training_arguments
    from grpo_utils.data.sources import addition_rows

    size = 16 // parts
    arguments = dict(loss_type=kind, beta=beta, epsilon=LOW, epsilon_high=high(kind), scale_rewards=kind != "dr_grpo")
    arguments |= dict(per_device_train_batch_size=size, gradient_accumulation_steps=parts, num_generations=SIZE)
    arguments |= dict(max_completion_length=LONGEST, output_dir="outputs") | changes
    config = GRPOConfig(**training_arguments(PROFILES["cpu"], **arguments))
    return GRPOTrainer(model, random_reward, config, Dataset.from_list(addition_rows(40)), processing_class=tiny()[1])


@functools.cache
def cached_trainer(kind: str, beta: float, parts: int):
    trainer = trainer_for(tiny()[0], kind, beta, parts)
    trainer.current_gradient_accumulation_steps = parts
    trainer.model.train()
    return trainer


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


def batch_of(kind: str, policy: str, masked: bool) -> dict:
    """What TRL's loss is given: on-policy without, off-policy with far other old log-probabilities."""
    import torch

    batch = dict(sampled())
    logps = batch.pop("logps")
    generator = torch.Generator().manual_seed(1)
    rewards, noise = torch.rand(16, generator=generator), torch.rand(2, *logps.shape, generator=generator) - 0.5
    batch["advantages"] = lesson().advantages_of(rewards, SIZE, scale=kind != "dr_grpo")
    batch["ref_per_token_logps"] = logps + 2 * noise[0]
    if policy == "off":
        batch["old_per_token_logps"] = logps + 4 * noise[1]
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


def by_hand(names: SimpleNamespace, kind: str, beta: float, pieces: list[dict], longest: int = LONGEST):
    how = dict(beta=beta, low=LOW, high=high(kind), longest=longest, parts=len(pieces))
    return sum(names.grpo_loss(names.token_logps(tiny()[0], piece), piece, kind, **how) for piece in pieces)


@functools.cache
def by_trl(kind: str, beta: float, policy: str, parts: int, masked: bool):
    pieces = parts_of(batch_of(kind, policy, masked), parts)
    return gradient(sum(cached_trainer(kind, beta, parts)._compute_loss(tiny()[0], piece) for piece in pieces))


def difference(names: SimpleNamespace, kind: str, beta: float, policy: str, parts: int, masked: bool) -> float:
    """The largest one, of the loss and of any entry of the gradient."""
    mine = gradient(by_hand(names, kind, beta, parts_of(batch_of(kind, policy, masked), parts)))
    loss, grads = by_trl(kind, beta, policy, parts, masked)
    assert grads.abs().max() > 1e-3  # else a small difference would mean nothing
    return max(abs(mine[0] - loss), float((mine[1] - grads).abs().max()))


# The formulas are TRL's


@pytest.mark.parametrize("masked", [False, True], ids=["all", "rows-masked"])
@pytest.mark.parametrize("parts", [1, 2], ids=["whole", "two-parts"])
@pytest.mark.parametrize("policy", ["on", "off"])
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradient_are_those_of_trl(kind, beta, policy, parts, masked):
    assert difference(lesson(), kind, beta, policy, parts, masked) < 1e-5


def test_the_batch_is_one_in_which_a_wrong_formula_shows():
    import torch

    batch = batch_of("dapo", "off", masked=False)
    kept, advantages = batch["completion_mask"].bool(), batch["advantages"].unsqueeze(1)
    ratio = torch.exp(sampled()["logps"] - batch["old_per_token_logps"])
    assert ((ratio < 1 - LOW) & (advantages < 0) & kept).sum() > 5
    assert ((ratio > 1 + high("dapo")) & (advantages > 0) & kept).sum() > 5
    assert ((ratio > high("cispo")) & kept).sum() > 5
    first, second = (part["completion_mask"].sum() for part in parts_of(batch, 2))
    assert first + 10 < second
    assert 0 < ended(batch).sum() < 16
    assert batch["prompt_mask"].min() == 0  # some prompt is padded


#: A changed formula, and what it was.
MUTANTS = [
    ("-torch.min(", "-torch.max("),
    ("-torch.min(", "torch.min("),
    ("1 - low, 1 + high", "1 - high, 1 + low"),
    ("1 - low, 1 + high", "1 - low, 1 + low"),
    ("torch.exp(logps - old)\n    clipped", "torch.exp(old - logps)\n    clipped"),
    (".clamp(max=cap).detach()", ".clamp(max=cap)"),
    (".clamp(max=cap).detach()", ".detach()"),
    ("-weight * ", "weight * "),
    ("torch.exp(ref - logps) - (ref - logps) - 1", "torch.exp(logps - ref) - (logps - ref) - 1"),
    ("torch.exp(ref - logps) - (ref - logps) - 1", "logps - ref"),
    ("beta * penalties * torch.exp(logps - old)", "beta * penalties"),
    ("losses + beta", "losses - beta"),
    ("losses = losses * mask", "losses = losses * 1"),
    ("/ lengths).mean() / parts", "/ lengths).mean()"),
    ("lengths = mask.sum(dim=1).clamp(min=1)", "lengths = longest"),
    ("mask.sum().clamp(min=1) / parts", "mask.sum().clamp(min=1)"),
    ("(len(mask) * longest)", "mask.numel()"),
    ("(len(mask) * longest) / parts", "(len(mask) * longest)"),
    ("losses.sum() / tokens.clamp(min=1)", "losses.sum() / mask.sum() / parts"),
    ("tokens.shape[1] - 1 : -1]", "tokens.shape[1] :]"),
    ("log_softmax(-1)", "softmax(-1)"),
    ('batch.get("old_per_token_logps", logps.detach())', "logps.detach()"),
]
#: The loop's own lines: what the two updates of a batch are made of.
LOOP_MUTANTS = [
    ("(losses * mask).sum() / mask.sum()", "(losses * mask).sum() / mask.numel()"),
    ("(losses * mask).sum() / mask.sum()", "losses.sum() / mask.sum()"),
    ("old = logps.detach() if old is None else old", "old = logps.detach()"),
    ("clip_grad_norm_(weights, 1.0)", "clip_grad_norm_(weights, 0.1)"),
]
HARD = [(kind, 0.04, "off", 2, False) for kind in KINDS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant[1].replace("\n", " "))
def test_a_changed_formula_is_found(mutant):
    source = source_of_formulas()
    assert source.count(mutant[0]) == 1
    names = formulas(source.replace(*mutant))
    assert max(difference(names, *case) for case in HARD) > 1e-5


# Whole steps: advantages, parts, the gradient that reaches the optimizer, several updates a batch


@pytest.mark.parametrize("mask_truncated", [False, True], ids=["all", "truncated-masked"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_updates_of_trl_from_one_batch_are_ours(kind, mask_truncated, tmp_path, monkeypatch):
    import torch

    monkeypatch.chdir(tmp_path)
    model = tiny()[0]
    with weights_kept(model):
        before = weights_of(model)
        seen = train_with_trl(model, kind, 0.04, 2, mask_truncated_completions=mask_truncated, **DESCENT)
        theirs = weights_of(model)
    with weights_kept(model):
        for _ in range(2):
            train_by_hand(model, kind, seen["parts"])
        mine = weights_of(model)
    assert (theirs - before).abs().max() > 1e-3
    assert (theirs - mine).abs().max() < 1e-5
    ours = lesson().advantages_of(torch.tensor(seen["rewards"]), SIZE, scale=kind != "dr_grpo")
    assert torch.allclose(ours, seen["whole"]["advantages"], atol=1e-6)
    assert mask_is_trls(lesson(), seen["whole"], mask_truncated)
    masked = sum(int((part["completion_mask"].sum(dim=1) == 0).sum()) for part in seen["parts"])
    assert len(seen["parts"]) == 2 and (masked > 0) == mask_truncated


def test_a_changed_mask_is_found(tmp_path, monkeypatch):
    """Without its EOS a completion would not learn to stop; the equality of the losses cannot tell."""
    monkeypatch.chdir(tmp_path)
    model, right, wrong = tiny()[0], "ends.cumsum(dim=1) - ends == 0", "ends.cumsum(dim=1) == 0"
    source = source_of_formulas()
    assert source.count(right) == 1
    with weights_kept(model):
        seen = train_with_trl(model, "dapo", 0.0, 1, **DESCENT)
    assert mask_is_trls(lesson(), seen["whole"])
    assert not mask_is_trls(formulas(source.replace(right, wrong)), seen["whole"])


def mask_is_trls(names: SimpleNamespace, batch: dict, mask_truncated: bool = False) -> bool:
    """Whether the lesson's mask of TRL's completions is TRL's; some, not all, of them were cut off."""
    import torch

    mask = names.completion_mask(batch["completion_ids"], tiny()[1].eos_token_id)
    assert 0 < ended(batch).sum() < len(mask)
    if mask_truncated:
        mask = mask * ended(batch).int().unsqueeze(1)
    return torch.equal(mask, batch["completion_mask"].int())


# The bare loop, on TRL's batch, against TRL's training


@pytest.fixture(scope="module")
def two_adam_steps(tmp_path_factory) -> tuple:
    """TRL's batch of two groups of eight, and its weights after two steps of Adam from it."""
    model = tiny()[0]
    folder = str(tmp_path_factory.mktemp("adam"))
    with weights_kept(model):
        seen = train_with_trl(model, "dapo", 0.0, 1, num_generations=8, output_dir=folder, **ADAM)
        return seen, weights_of(model)


def test_two_updates_of_the_bare_loop_are_those_of_trl(two_adam_steps):
    assert loop_off_by(source_of_formulas(), *two_adam_steps) < 1e-5


@pytest.mark.parametrize("mutant", LOOP_MUTANTS, ids=lambda mutant: mutant[1])
def test_a_changed_loop_is_found(mutant, two_adam_steps):
    source = source_of_formulas()
    assert source.count(mutant[0]) == 1
    assert loop_off_by(source.replace(*mutant), *two_adam_steps) > 1e-5


def loop_off_by(source: str, seen: dict, theirs) -> float:
    """The largest difference of any weight, after `train` has made two updates from TRL's batch."""
    import torch
    from datasets import Dataset

    from grpo_utils.data.sources import addition_rows

    model, tokenizer = tiny()
    names = {}
    exec(source, names)
    names["sample"] = lambda *args, **kwargs: (seen["whole"], [""] * 16)
    rows, rewards = Dataset.from_list(addition_rows(8)), torch.tensor(seen["rewards"])
    with weights_kept(model):
        names["train"](model, tokenizer, rows, lambda *_: rewards, steps=1, updates=2, low=LOW, high=high("dapo"))
        return float((weights_of(model) - theirs).abs().max())


RATE = 1.0
ONCE = dict(lr_scheduler_type="constant", max_steps=2, num_iterations=2, max_completion_length=CUT_OFF)
DESCENT = dict(optim="sgd", learning_rate=RATE, max_grad_norm=0.0, **ONCE)
ADAM = dict(optim="adamw_torch", learning_rate=2e-3, weight_decay=0.0, max_grad_norm=1.0, **ONCE)


def weights_of(model):
    import torch

    return torch.cat([weight.detach().flatten().clone() for weight in model.parameters()])


@contextlib.contextmanager
def weights_kept(model):
    """What happens to the weights inside is undone."""
    start = {name: value.clone() for name, value in model.state_dict().items()}
    yield
    model.load_state_dict(start)


def train_with_trl(model, kind: str, beta: float, parts: int, **changes) -> dict:
    """Two steps, both from one batch: its rewards, the batch in groups, and in the parts that TRL shuffles it into."""
    trainer = trainer_for(model, kind, beta, parts, **changes)
    seen, score = {}, trainer._generate_and_score_completions

    def caught(inputs):
        batch = score(inputs)
        seen["whole"], seen["rewards"] = dict(batch), list(trainer._logs["rewards"]["random_reward"])
        return batch

    trainer._generate_and_score_completions = caught
    trainer.train()
    return {**seen, "parts": trainer._buffered_inputs}


def train_by_hand(model, kind: str, pieces: list[dict]) -> None:
    import torch

    gradient(by_hand(lesson(), kind, 0.04, pieces, longest=CUT_OFF))
    with torch.no_grad():
        for weight in model.parameters():
            weight -= RATE * weight.grad


@pytest.mark.parametrize(
    "change", [("+ 1e-4", "+ 1e-2"), ("std(dim=1, keepdim=True)", "std(dim=1, keepdim=True, correction=0)")]
)
def test_a_changed_advantage_is_found(change, tmp_path, monkeypatch):
    import torch

    monkeypatch.chdir(tmp_path)
    trainer = trainer_for(tiny()[0], "dapo", 0.0, 1)
    trainer.model.train()
    theirs = trainer._generate_and_score_completions(list(trainer.train_dataset.select([0] * 4 + [1] * 4)))
    rewards = torch.tensor(list(trainer._logs["rewards"]["random_reward"]))
    source = source_of_formulas()
    assert source.count(change[0]) == 1
    right, wrong = (formulas(text).advantages_of(rewards, SIZE) for text in (source, source.replace(*change)))
    assert torch.allclose(right, theirs["advantages"], atol=1e-6)
    assert not torch.allclose(wrong, theirs["advantages"], atol=1e-3)


# The lesson as readers run it


@pytest.fixture(scope="module")
def committed() -> str:
    return said(nbformat.read(LESSON, as_version=4))


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=1200)
    assert result.returncode == 0, result.stdout[-4000:]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_committed_lesson_computes_its_verdicts(committed, verdict):
    assert f"{verdict}: True" in committed


def test_the_numbers_on_paper_are_right(committed):
    """The sums that the text does in words, done by Python."""
    tokens = [-0.9, -1.8, 0.4, 0.5, 0.7, 0.5, 0.5, 0.45, 0.5, 0.5]
    lengths = [2, 1, 4, 3]
    rows = [tokens[sum(lengths[:i]) : sum(lengths[: i + 1])] for i in range(4)]
    grpo = sum(sum(row) / len(row) for row in rows) / 4
    for kind, loss in (("grpo", grpo), ("bnpo", 0.135), ("dapo", 0.135), ("dr_grpo", 1.35 / 2 / 20)):
        printed = float(re.search(rf"^{kind} +(-?[\d.]+)", committed, re.MULTILINE)[1])
        assert printed == pytest.approx(loss, abs=1e-4)
    halves = (sum(tokens[:3]) / 3 + sum(tokens[3:]) / 7) / 2
    assert float(re.search(r"bnpo +whole +[\d.]+ +in two parts +(-[\d.]+)", committed)[1]) == pytest.approx(
        halves, abs=1e-4
    )


def test_the_formulas_need_torch_alone_and_the_lesson_no_unsloth():
    assert re.findall(r"^ *(?:import|from) .*", source_of_formulas(), re.MULTILINE) == ["import torch"]
    cells = [cell.source for cell in nbformat.read(LESSON, as_version=4).cells if cell.cell_type == "code"]
    assert not [source for source in cells if "unsloth" in source]


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "20", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_every_override_arrives(other_family, committed):
    assert "tiny-gemma3, 20 steps of the bare loop, on the CPU" in other_family
    rewards = re.compile(r"^tensor\(\[\[.*", re.MULTILINE)
    assert rewards.findall(other_family) and rewards.findall(other_family) != rewards.findall(committed)  # another seed


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_other_family_with_another_seed_comes_to_the_same_verdicts(other_family, verdict):
    assert f"{verdict}: True" in other_family
