"""Lesson 08: its formulas are TRL's, a changed formula is found, and it runs as readers run it.

The formulas are the lesson's own: the cells tagged `formulas` and the table of variants are executed here, so there
is no second copy.
"""

import functools
import re
from types import SimpleNamespace

import nbformat
import pytest
from lessons import alt_texts, run_other_family, run_with_nbval
from losses_by_hand import (
    CUT_OFF,
    HIGH,
    LESSON,
    LONGEST,
    SIZE,
    batch_of,
    difference,
    ended,
    formulas,
    gradient,
    lesson,
    parts_of,
    sampled,
    source_of_formulas,
    tiny,
    trainer_for,
    weights_kept,
)

from grpo_utils.rewards import is_strictly_right

pytestmark = pytest.mark.slow
KINDS = ("GRPO", "BNPO", "Dr. GRPO", "CISPO", "KL penalty")


def table() -> dict[str, tuple[str, str]]:
    """The lesson's variants: the code that changes, and TRL's arguments."""
    text = "\n".join(cell.source for cell in nbformat.read(LESSON, as_version=4).cells)
    return {
        name: (code, arguments)
        for name, code, arguments in re.findall(r"^\| (.+?) \| `(.+)` \| `(.+)` \|$", text, re.M)
    }


def arguments_of(kind: str) -> dict:
    return eval(f"dict({table()[kind][1]})") if kind in KINDS else {}


# The two sides of the comparison


@functools.cache
def cached_trainer(kind: str, parts: int):
    trainer = trainer_for(tiny()[0], parts, **arguments_of(kind))
    trainer.current_gradient_accumulation_steps = parts
    trainer.model.train()
    return trainer


@functools.cache
def by_trl(kind: str, off_policy: bool, masked: bool, parts: int):
    pieces = parts_of(batch_of(off_policy, masked), parts)
    return gradient(sum(cached_trainer(kind, parts)._compute_loss(tiny()[0], piece) for piece in pieces))


# The lesson's loss is TRL's


def loss_off_by(names: SimpleNamespace, off_policy: bool = True, masked: bool = False, parts: int = 1) -> float:
    """The lesson takes the batch whole; TRL's gradient must not depend on the parts."""
    batch = batch_of(off_policy, masked)
    mine = gradient(names.grpo_loss(names.token_logps(tiny()[0], batch), batch, high=HIGH))
    return difference(mine, by_trl("DAPO", off_policy, masked, parts))


@pytest.mark.parametrize("parts", [1, 2], ids=["whole", "two-parts"])
@pytest.mark.parametrize("masked", [False, True], ids=["all", "rows-masked"])
@pytest.mark.parametrize("off_policy", [False, True], ids=["on", "off"])
def test_loss_and_gradient_are_those_of_trl(off_policy, masked, parts):
    assert loss_off_by(lesson(), off_policy, masked, parts) < 1e-5


def test_the_batch_is_one_in_which_a_wrong_formula_shows():
    import torch

    batch = batch_of()
    kept, advantages = batch["completion_mask"].bool(), batch["advantages"].unsqueeze(1)
    ratio = torch.exp(sampled()["logps"] - batch["old_per_token_logps"])
    assert ((ratio < 0.8) & (advantages < 0) & kept).sum() > 5
    assert ((ratio > 1 + HIGH) & (advantages > 0) & kept).sum() > 5
    assert ((ratio > 5.0) & kept).sum() > 5  # the cap of CISPO
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
    ("torch.exp(logps - old)", "torch.exp(old - logps)"),
    ("(losses * mask).sum() / mask.sum()", "losses.sum() / mask.sum()"),
    ("(losses * mask).sum() / mask.sum()", "(losses * mask).sum() / mask.numel()"),
    ("tokens.shape[1] - 1 : -1]", "tokens.shape[1] :]"),
    ("log_softmax(-1)", "softmax(-1)"),
]


def changed(mutant: tuple[str, str]) -> SimpleNamespace:
    source = source_of_formulas()
    assert source.count(mutant[0]) == 1
    return formulas(source.replace(*mutant))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant[1])
def test_a_changed_formula_is_found(mutant):
    assert loss_off_by(changed(mutant)) > 1e-5


# The table of variants, evaluated as it is written


def variant_off_by(kind: str, code: str) -> float:
    """The batch comes in two parts. The KL penalty keeps the lesson's mean, which is that of the whole batch."""
    batch = batch_of()
    batch["advantages"] = advantages_for(kind)
    parts = 1 if kind in ("CISPO", "KL penalty") else 2
    losses = [by_table(kind, code, piece) for piece in parts_of(batch, parts)]
    pieces = [trl_loss(kind, piece) for piece in parts_of(batch, 2)]
    return difference(gradient(sum(losses) / parts), gradient(sum(pieces)))


def advantages_for(kind: str):
    """As the table's `scale_rewards` has them."""
    import torch

    rewards = torch.rand(16, generator=torch.Generator().manual_seed(1)).view(-1, SIZE)
    scaled = arguments_of(kind).get("scale_rewards") != "none"
    return lesson().advantages_of(rewards, SIZE) if scaled else (rewards - rewards.mean(1, keepdim=True)).view(-1)


def trl_loss(kind: str, piece: dict):
    return cached_trainer(kind, 2)._compute_loss(tiny()[0], piece)


def by_table(kind: str, code: str, batch: dict):
    """The loss of a batch, with the code of the table in place of the lesson's."""
    import torch

    logps, old = lesson().token_logps(tiny()[0], batch), batch["old_per_token_logps"]
    names = dict(torch=torch, logps=logps, ratio=torch.exp(logps - old), mask=batch["completion_mask"])
    names |= dict(ref=batch["ref_per_token_logps"], advantages=batch["advantages"].unsqueeze(1))
    names |= dict(losses=lesson().clipped_loss(logps, old, batch["advantages"], 0.2, HIGH))
    names |= dict(max_completion_length=LONGEST)
    value = eval(code.removeprefix("losses = "), names)
    return value if value.dim() == 0 else (value * names["mask"]).sum() / names["mask"].sum()


def test_the_table_has_every_variant():
    assert tuple(table()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_variant_of_the_table_is_trls(kind):
    assert variant_off_by(kind, table()[kind][0]) < 1e-5


@pytest.mark.parametrize(
    "kind, old, new",
    [
        ("GRPO", "mask.sum(1)", "mask.sum()"),
        ("GRPO", ".mean()", ".sum()"),
        ("BNPO", "mask.sum()", "mask.numel()"),
        ("Dr. GRPO", "(len(mask) * max_completion_length)", "mask.numel()"),
        ("CISPO", ".detach()", ""),
        ("CISPO", ".clamp(max=5.0)", ""),
        ("KL penalty", " * ratio", ""),
        ("KL penalty", "losses + ", "losses - "),
        ("KL penalty", "(torch.exp(ref - logps) - (ref - logps) - 1)", "(logps - ref)"),
    ],
)
def test_a_changed_variant_is_found(kind, old, new):
    code = table()[kind][0]
    assert code.count(old) == 1
    assert variant_off_by(kind, code.replace(old, new)) > 1e-5


def test_bnpo_is_the_lessons_loss_until_a_batch_is_split():
    code = table()["BNPO"][0]
    whole, parts = batch_of(), parts_of(batch_of(), 2)
    once = gradient(by_table("BNPO", code, whole))
    assert difference(once, by_trl("DAPO", True, False, 1)) < 1e-5
    split = gradient(sum(by_table("BNPO", code, part) for part in parts) / 2)
    assert difference(split, by_trl("DAPO", True, False, 2)) > 1e-3


# Two whole steps of TRL: advantages, mask, and the weights that come out


@pytest.fixture(scope="module", params=[False, True], ids=["all", "truncated-masked"])
def two_steps(request, tmp_path_factory) -> tuple:
    """TRL's batch of two groups of eight, and its weights after two updates from it."""
    model, folder = tiny()[0], str(tmp_path_factory.mktemp("steps"))
    changes = dict(num_generations=8, mask_truncated_completions=request.param, output_dir=folder, **STEPS)
    with weights_kept(model):
        seen = train_with_trl(model, **changes)
        return seen, weights_of(model), request.param


STEPS = dict(lr_scheduler_type="constant", max_steps=2, num_iterations=2, max_completion_length=CUT_OFF)
STEPS |= dict(optim="adamw_torch", learning_rate=2e-3, weight_decay=0.0, max_grad_norm=1.0, epsilon_high=0.2)


def test_two_updates_are_those_of_trl(two_steps):
    seen, theirs, _ = two_steps
    assert updates_off_by(lesson(), seen, theirs) < 1e-5


@pytest.mark.parametrize(
    "mutant",
    [
        ('batch.setdefault("old_per_token_logps", logps.detach())', 'batch["old_per_token_logps"] = logps.detach()'),
        ("parameters(), 1.0)", "parameters(), 0.1)"),
        ("optimizer.zero_grad()", "pass"),
    ],
    ids=lambda mutant: mutant[1],
)
def test_a_changed_update_is_found(mutant, two_steps):
    seen, theirs, _ = two_steps
    assert updates_off_by(changed(mutant), seen, theirs) > 1e-5


def test_advantages_and_mask_are_those_of_trl(two_steps):
    import torch

    seen, _, masked = two_steps
    ours = lesson().advantages_of(torch.tensor(seen["rewards"]), 8)
    assert torch.allclose(ours, seen["batch"]["advantages"], atol=1e-6)
    assert mask_is_trls(lesson(), seen["batch"], masked)


@pytest.mark.parametrize("change", [("+ 1e-4", "+ 1e-2"), ("groups.std(dim=1, ", "groups.std(dim=1, correction=0, ")])
def test_a_changed_advantage_is_found(change, two_steps):
    import torch

    seen, _, _ = two_steps
    wrong = changed(change).advantages_of(torch.tensor(seen["rewards"]), 8)
    assert not torch.allclose(wrong, seen["batch"]["advantages"], atol=1e-3)


def test_a_changed_mask_is_found(two_steps):
    """Without its EOS a completion would not learn to stop; the equality of the losses does not depend on it."""
    seen, _, masked = two_steps
    names = changed(("ends.cumsum(dim=1) - ends == 0", "ends.cumsum(dim=1) == 0"))
    assert not mask_is_trls(names, seen["batch"], masked)


def mask_is_trls(names: SimpleNamespace, batch: dict, masked: bool) -> bool:
    """Whether the lesson's mask of TRL's completions is TRL's; some, not all, of them were cut off."""
    import torch

    mask = names.completion_mask(batch["completion_ids"], tiny()[1].eos_token_id)
    assert 0 < ended(batch).sum() < len(mask)
    if masked:
        mask = mask * ended(batch).int().unsqueeze(1)
    return torch.equal(mask, batch["completion_mask"].int())


def updates_off_by(names: SimpleNamespace, seen: dict, theirs) -> float:
    """The largest difference of any weight, after two updates from TRL's batch."""
    import torch

    model, batch = tiny()[0], dict(seen["batch"])
    batch.pop("old_per_token_logps", None)
    with weights_kept(model):
        before = weights_of(model)
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for _ in range(2):
            names.update(model, optimizer, batch)
        assert (theirs - before).abs().max() > 1e-3
        return float((weights_of(model) - theirs).abs().max())


def weights_of(model):
    import torch

    return torch.cat([weight.detach().flatten().clone() for weight in model.parameters()])


def train_with_trl(model, **changes) -> dict:
    """Train; the batch that TRL sampled, and its rewards."""
    trainer = trainer_for(model, **changes)
    seen, score = {}, trainer._generate_and_score_completions

    def caught(inputs):
        batch = score(inputs)
        seen["batch"], seen["rewards"] = dict(batch), list(trainer._logs["rewards"]["random_reward"])
        return batch

    trainer._generate_and_score_completions = caught
    trainer.train()
    return seen


# The lesson as readers run it


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)


def test_the_formulas_need_torch_alone():
    assert re.findall(r"^ *(?:import|from) .*", source_of_formulas(), re.MULTILINE) == ["import torch"]


def test_the_printed_advantages_are_those_of_the_picture(printed):
    import torch
    from drawings.method import GROUP, TIED

    rows = lesson().advantages_of(torch.tensor([*GROUP, *TIED]), 8).view(2, 8).tolist()
    assert all(" ".join(f"{value:5.2f}" for value in row) in printed for row in rows)


def test_the_sampled_group_shows_how_the_format_pays(printed):
    lines = re.findall(r"^reward (\S+)  advantage +(\S+)  (.*)$", printed, re.MULTILINE)
    scored = sorted((float(reward), float(advantage), text) for reward, advantage, text in lines)
    advantages = [advantage for _, advantage, _ in scored]
    assert len(lines) == 8 and advantages == sorted(advantages) and len({reward for reward, *_ in scored}) > 2
    (*_, worst), (*_, best) = scored[0], scored[-1]
    assert is_strictly_right(best, "108") and "108" in worst and "<" not in worst


def test_the_quoted_probabilities_belong_to_their_tokens(printed):
    [shown] = re.findall(r"(?:^'.*\n){3}", printed, re.MULTILINE)
    tokens = [re.findall(r"('.*?') \d\.\d\d", line) for line in shown.splitlines()]
    quoted = [tokens[0][0], tokens[1][0], tokens[0][6], tokens[2][6]]
    assert quoted == ["'9'", "'<reasoning>'", "' is'", "' ='"]


def test_one_update_raises_what_was_paid_and_lowers_what_was_not(book):
    [shown] = [alt for alt in alt_texts(book) if alt.startswith("Probability of the last token")]
    bars = {text: float(new) - float(old) for text, old, new in re.findall(r"(\S.*?): (0\.\d\d) to (0\.\d\d)", shown)}
    assert bars["; <reasoning>5"] > 0.2 and bars["; <reasoning>"] > 0.03


def test_the_loop_learns_without_the_deviation_too(printed):
    with_std, without = re.findall(r"^with(?:out| std): +(0\.\d+)", printed, re.MULTILINE)
    assert float(with_std) > 0.8 and float(without) > 0.8


def test_the_loop_learns_and_its_last_steps_change_nothing(printed):
    gain, late = printed.split("the last two evaluations:\n")
    assert "Strict accuracy rose" in gain and late.startswith("No improvement shown")


COMPARED = re.compile(
    r"TRL's loss: +(?P<trl>\S+)\nlargest gradient: +(?P<largest>\S+)\nloss by hand: +(?P<ours>\S+), gradient off by "
    r"(?P<rounding>\S+)\nloss with epsilon 0.28: +\S+, gradient off by (?P<wrong>\S+)"
)


def test_the_lessons_comparison_detects_a_wrong_formula(printed):
    found = COMPARED.search(printed)
    assert found["ours"] == found["trl"]
    assert float(found["rounding"]) < 1e-6 < 1e-5 < float(found["wrong"])


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=18)


def test_every_override_arrives(other_family, printed):
    assert "tiny-gemma3" in other_family and "step 18  " in other_family
    earned = re.compile(r"^reward .*", re.MULTILINE)
    assert earned.findall(other_family) and earned.findall(other_family) != earned.findall(printed)  # another seed


def test_the_other_family_learns_and_its_loss_is_trls(other_family):
    found = COMPARED.search(other_family)
    assert float(found["ours"]) == pytest.approx(float(found["trl"]), abs=2e-6) and float(found["rounding"]) < 1e-5
    assert "Strict accuracy rose" in other_family
