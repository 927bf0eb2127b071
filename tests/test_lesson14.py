"""Lesson 14: its formulas are TRL's, its figures are what the benches stored, and its log is as old as its samples."""

import functools
import json
import re
import statistics
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import bench_losses
import bench_reuse
import bench_sft
import bench_stale
import benches
import losses_by_hand as by_hand
import nbformat
import pytest
import torch
from course import ROOT
from lessons import alt_texts, briefly_and_in_full, defined_by, formulas_of, run_other_family, run_with_nbval
from stale_trainer import CAP, WEIGHTS, Delay, StaleTrainer, swapped
from tiny_runs import train_tiny

from grpo_utils.evaluation.statistics import paired_difference

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "14_when_the_log_lies.ipynb"
LOSSES = json.loads(bench_losses.STORED.read_text(encoding="utf-8"))
STORED = benches.read_stored(bench_stale.STORED)
ROWS = STORED["rows"]


@functools.cache
def source_of_formulas() -> str:
    return formulas_of(nbformat.read(LESSON, as_version=4))


def formulas(*change: str) -> SimpleNamespace:
    """What the lesson's cells of formulas define, perhaps with one piece changed."""
    source = source_of_formulas()
    assert not change or source.count(change[0]) == 1
    names = {}
    exec(source.replace(*change) if change else source, names)
    return SimpleNamespace(**names)


# The formulas are TRL's


def trl_gradient(changes: dict):
    """The loss and the gradient of one off-policy batch, by TRL."""
    trainer = by_hand.trainer_for(by_hand.tiny()[0], **dict(epsilon_high=0.2) | changes)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    return by_hand.gradient(trainer._compute_loss(by_hand.tiny()[0], by_hand.batch_of()))


def batch_loss(kind: str, losses: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The loss of a batch, from the loss of each token: what the lesson says of each loss in words."""
    summed = (losses * mask).sum(1)
    if kind == "grpo":
        return (summed / mask.sum(1)).mean()
    return summed.sum() / (mask.sum() if kind == "dapo" else len(mask) * by_hand.LONGEST)


def off_by(token_loss: Callable, kind: str, changes: dict) -> float:
    """How far a loss of one token, averaged over the batch, is from TRL's."""
    batch = by_hand.batch_of()
    logps = by_hand.lesson().token_logps(by_hand.tiny()[0], batch)
    losses = token_loss(logps, batch["old_per_token_logps"], batch["advantages"].unsqueeze(1))
    loss = batch_loss(kind, losses, batch["completion_mask"])
    return by_hand.difference(by_hand.gradient(loss), trl_gradient(changes))


@pytest.mark.parametrize("kind", ["grpo", "dapo", "dr_grpo"])
def test_a_loss_of_the_lesson_is_trls(kind):
    assert off_by(formulas().token_loss, kind, dict(loss_type=kind)) < 1e-5


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("grpo", "-torch.min(", "-torch.max("),
        ("grpo", "clamp(0.8, 1.2)", "clamp(0.8, 1.28)"),
    ],
)
def test_a_changed_formula_is_found(kind, old, new):
    assert off_by(formulas(old, new).token_loss, kind, dict(loss_type=kind)) > 1e-5


# The table describes the variants of TRL


@pytest.mark.parametrize(("cap", "epsilon_high"), [(5.0, 5.0), (0.2, None)], ids=["advised", "default"])
def test_cispo_limits_the_ratio_and_keeps_a_push_on_every_token(cap, epsilon_high):
    def loss(logps, old, advantages):
        return -(logps - old).exp().clamp(max=cap).detach() * advantages * logps

    assert off_by(loss, "dapo", dict(loss_type="cispo", epsilon_high=epsilon_high)) < 1e-5


def test_sapo_lets_the_push_fade():
    def loss(logps, old, advantages):
        heat = torch.where(advantages > 0, 1.0, 1.05)
        return -torch.sigmoid(heat * ((logps - old).exp() - 1)) * 4 / heat * advantages

    assert off_by(loss, "grpo", dict(loss_type="sapo")) < 1e-5


def test_the_ratio_of_gspo_is_trls():
    batch = by_hand.batch_of()
    log_ratio = by_hand.sampled()["logps"] - batch["old_per_token_logps"]
    ratios = [row[real.bool()].mean().exp() for row, real in zip(log_ratio, batch["completion_mask"], strict=True)]
    ratios, advantages = torch.stack(ratios), batch["advantages"]
    loss = -torch.min(ratios * advantages, ratios.clamp(0.8, 1.2) * advantages).mean()
    assert ((ratios - 1).abs() > 0.01).any()
    changes = dict(loss_type="grpo", importance_sampling_level="sequence")
    assert trl_gradient(changes)[0] == pytest.approx(loss.item(), abs=1e-6)


# The advantages are TRL's


def half_tied(completions, **kwargs) -> list[float]:
    """The first half of the completions earn nothing, so their groups are tied."""
    return [float(place >= len(completions) / 2) * (place % 2) for place in range(len(completions))]


def by_length(completions, **kwargs) -> list[float]:
    return [len(completion[0]["content"]) * 0.01 for completion in completions]


def one_step(rewards: list, **changes) -> tuple:
    """The trainer after one step, and the batch that its loss was given."""
    model, _ = by_hand.tiny()
    with by_hand.weights_kept(model):
        trainer = by_hand.trainer_for(model, rewards=rewards, max_steps=1, **changes)
        batches, score = [], trainer._generate_and_score_completions

        def caught(inputs):
            batches.append(score(inputs))
            return batches[-1]

        trainer._generate_and_score_completions = caught
        trainer.train()
    return trainer, batches[0]


def advantages_of(rewards: list, **changes) -> tuple:
    """TRL's advantages, the score of each reward, and the logged share of tied groups."""
    trainer, batch = one_step(rewards, **changes)
    scores = torch.tensor([list(trainer._logs["rewards"][reward.__name__]) for reward in rewards])
    return batch["advantages"], scores.T.view(4, 4, -1), trainer.state.log_history[0]["frac_reward_zero_std"]


def test_scale_rewards_selects_the_deviation_that_divides_the_advantage():
    for scale in ("group", "batch", "none"):
        advantages, scores, tied = advantages_of([half_tied], scale_rewards=scale)
        rewards = scores[:, :, 0]
        centered = rewards - rewards.mean(1, keepdim=True)
        divisors = dict(group=rewards.std(1, keepdim=True) + 1e-4, batch=rewards.std() + 1e-4, none=torch.tensor(1.0))
        assert torch.allclose((centered / divisors[scale]).flatten(), advantages, atol=1e-5)
        assert tied == (0.0 if scale == "batch" else 0.5)


def normalize(values, *dims: int):
    return (values - values.mean(dims, keepdim=True)) / (values.std(dims, keepdim=True) + 1e-4)


def test_gdpo_is_trls_and_does_not_count_tied_groups():
    for weights in ([1.0, 1.0], [1.0, 0.3]):
        rewards = [half_tied, by_length]
        advantages, scores, _ = advantages_of(
            rewards, multi_objective_aggregation="normalize_then_sum", reward_weights=weights
        )
        separate = (normalize(scores, 1) * torch.tensor(weights)).sum(2)
        assert torch.allclose(normalize(separate, 0, 1).flatten(), advantages, atol=1e-4)
    *_, tied = advantages_of([half_tied], multi_objective_aggregation="normalize_then_sum")
    assert tied == 0.0


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (2, 1, 1), (1, 1, 2), (1, 2, 2), (1, 4, 2), (2, 1, 2), (2, 2, 2), (1, 3, 4)]
)
def test_trl_keeps_old_probabilities_only_if_a_ratio_can_differ_from_1(sizes):
    names = dict(zip(("num_iterations", "steps_per_generation", "gradient_accumulation_steps"), sizes, strict=True))
    _, batch = one_step([by_length], per_device_train_batch_size=4, **names)
    assert (batch.get("old_per_token_logps") is not None) == solution()(*sizes)


def solution():
    """The lesson's answer to exercise 2."""
    [cell] = [cell.source for cell in nbformat.read(LESSON, as_version=4).cells if "def clip_solution" in cell.source]
    names = {}
    exec(cell[: cell.index("print(")], names)
    return names["clip_solution"]


# The lesson as readers run it


@briefly_and_in_full(STEPS=3)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


@pytest.mark.upgrade
def test_it_runs_with_the_other_family(tmp_path):
    run_other_family(LESSON, tmp_path, STEPS=2, DELAY=1)


def test_every_setting_of_the_table_of_losses_is_one_of_trl(book):
    from trl import GRPOConfig

    text = "\n".join(cell.source for cell in book.cells)
    rows = re.findall(r"^\| \[?([\w. ]+)(?:\]\([^)]+\))? \| .+ \| `(\w+=.+)` \|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == ["DAPO", "GRPO", "GSPO", "GDPO", "SAPO"]
    for _, settings in rows:
        GRPOConfig(output_dir="unused", use_cpu=True, bf16=False, **eval(f"dict({settings})"))


# What the lesson must show


def test_the_log_is_that_of_the_policy_that_sampled_and_not_of_the_saved_one(printed):
    log, writer, saved = (
        float(re.search(rf"^the {who}: +(\S+)$", printed, re.MULTILINE)[1])
        for who in ("log's last batch", "policy that wrote it", "policy that you save")
    )
    assert abs(log - writer) < 0.15 < 0.5 < log - saved


def test_only_the_run_that_knows_its_ratios_reports_clipping(book):
    [text] = [text for text in alt_texts(book) if text.startswith("Clipped tokens by step")]
    fresh, stale, ratio = map(float, re.findall(r"([\d.]+)%", text))
    assert fresh == stale == 0 < ratio


def test_a_completion_is_further_from_1_than_its_tokens(book):
    [text] = [text for text in alt_texts(book) if text.startswith("Ratios of a stale batch")]
    tokens, wholes = (int(share) for share in re.findall(r"(\d+)% of the", text))
    assert tokens > wholes + 20


# The dots and intervals are what the benches stored


def test_the_dots_are_what_is_stored(book):
    shown = defined_by(book, "SAMPLED = {")["SAMPLED"]
    assert list(shown) == list(bench_stale.ARMS)
    for arm, rates in shown.items():
        assert ", ".join(f"{rate:.2f}" for rate in rates) == bench_stale.rates_text(ROWS, arm, "sampled", 2)


def test_the_intervals_of_the_losses_are_what_is_stored_and_all_contain_0(book):
    shown = defined_by(book, "LOSSES = {")["LOSSES"]
    alone = {name for name in bench_losses.VARIANTS if name.startswith("any format")} | {"dapo", "4 updates, dapo"}
    assert set(shown) == set(bench_losses.VARIANTS) - alone
    for name, numbers in shown.items():
        found = bench_losses.difference(LOSSES, name, "accuracy")
        assert [f"{number:+.3f}" for number in numbers] == [f"{number:+.3f}" for number in found]
        assert found.covers_zero


def test_the_results_have_what_the_benches_stored():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for bench in (bench_stale, bench_reuse, bench_sft):
        assert page.count(f"## {bench.TITLE}\n{bench.section(benches.read_stored(bench.STORED))}") == 1


def test_the_page_is_what_is_stored():
    page = bench_losses.PAGE.read_text(encoding="utf-8")
    assert page.count(bench_losses.section(LOSSES)) == 1


def test_every_variant_was_trained_with_every_seed():
    found = sorted((row["variant"], row["seed"]) for row in LOSSES["rows"])
    assert found == sorted((name, seed) for name in bench_losses.VARIANTS for seed in bench_losses.SEEDS)


def test_the_seeds_show_what_the_lesson_concludes():
    for name, variant in bench_losses.VARIANTS.items():
        alone = name in ("any format, grpo", "4 updates, dapo")  # on the page, but not in the lesson's tables
        assert not variant.base or bench_losses.difference(LOSSES, name, "accuracy").covers_zero == (not alone)
    norms = [statistics.mean(bench_losses.values_of(LOSSES, name, "grad_norm")) for name in ("dr_grpo", "dapo")]
    assert norms[0] < norms[1]
    unclipped = sorted(bench_losses.values_of(LOSSES, "4 updates, no clip", "accuracy"))
    assert unclipped[0] < 0.1 and unclipped[1] > 0.7
    rows = benches.read_stored(bench_reuse.STORED)["rows"]
    best = bench_reuse.best_rates(rows)
    assert bench_reuse.difference(rows, best, bench_reuse.SAMPLE_STEPS).low > 0
    assert bench_reuse.difference(rows, best, bench_reuse.TIME_STEPS).high < 0
    assert best == {1: 2e-3, 4: 1e-3}


def test_every_arm_was_trained_and_no_run_is_stored_twice():
    found = [(row["arm"], row["seed"]) for row in ROWS]
    assert len(set(found)) == len(found) and {arm for arm, _ in found} == set(bench_stale.ARMS)


def test_without_a_correction_a_delay_costs_every_run_and_the_ratio_repairs_most():
    fresh, ratio = (bench_stale.of(ROWS, arm, "sampled") for arm in ("fresh", "delay 4, ratio"))
    harmed = [rate for arm in ("delay 4", "delay 8") for rate in bench_stale.of(ROWS, arm, "sampled")]
    corrected = [row["sampled"] for row in ROWS if row["arm"].startswith("delay 8, ")]
    assert max(harmed) + 0.3 < min(ratio) < min(fresh) and min(corrected) > max(
        bench_stale.of(ROWS, "delay 8", "sampled")
    )


def test_the_lesson_says_by_how_much_a_mask_repairs_more_than_the_ratio(book):
    mask, ratio = (bench_stale.of(ROWS, f"delay 8, {name}", "sampled") for name in ("sequence_mask", "ratio"))
    difference = benches.difference_text(paired_difference(mask, ratio, bench_stale.PROMPTS))
    assert difference in "\n".join(cell.source for cell in book.cells)


def test_a_hot_sampler_is_harmless_and_its_ratios_are_far_from_those_of_a_delay():
    assert min(bench_stale.of(ROWS, "temperature 1.3", "sampled")) > 0.85
    hot, delayed = (effective_shares(arm) for arm in ("temperature 1.3", "delay 4"))
    assert min(hot) > 0.7 > 0.6 > max(delayed)


def effective_shares(arm: str) -> list[float]:
    """The effective sample size of the completions' ratios as a share of their number, for each seed of an arm."""
    runs = [row["ratios"] for row in ROWS if row["arm"] == arm]
    return [
        sum(one["share"] * one["completions"] for one in run) / sum(one["completions"] for one in run) for run in runs
    ]


def test_the_lesson_names_the_difference_that_reuse_made(book):
    [told] = [part for cell in book.cells for part in cell.source.split("\n\n") if "#four-updates-per-batch" in part]
    rows = benches.read_stored(bench_reuse.STORED)["rows"]
    best = bench_reuse.best_rates(rows)
    samples = bench_reuse.difference(rows, best, bench_reuse.SAMPLE_STEPS).value
    minutes = bench_reuse.difference(rows, best, bench_reuse.TIME_STEPS).value
    assert re.findall(r"\d\.\d\d", told) == [f"{samples:.2f}", f"{-minutes:.2f}"] and samples > 0 > minutes


def test_one_odd_token_is_truncated_or_drops_its_completion():
    log_ratios = torch.tensor([[0.5, -0.5], [2.0, 0.0], [0.6, 0.6]])
    assert WEIGHTS["token_truncate"](log_ratios)[1].tolist() == [CAP, 1.0]
    assert WEIGHTS["sequence_mask"](log_ratios).flatten().tolist() == [1.0, 0.0, 0.0]


def test_a_sampler_gives_the_weights_back_even_after_an_error():
    layer = torch.nn.Linear(3, 2)
    before = layer.weight.clone()
    with pytest.raises(KeyError), swapped([layer.weight], [torch.zeros(2, 3)]):
        assert not layer.weight.any()
        raise KeyError
    assert torch.equal(layer.weight, before)


def test_without_a_delay_all_corrections_train_as_grpo_does():
    """With fresh samples every ratio is 1, so each correction must leave the training run as it is."""
    makers = [None, *(partial(StaleTrainer, sampler=Delay(0), correct=name) for name in ("none", "ratio", *WEIGHTS))]
    trained = [train_tiny({}, seed=0, steps=2, trainer_type=make)[0][0] for make in makers]
    adapters = [torch.cat([p.detach().flatten() for p in model.parameters() if p.requires_grad]) for model in trained]
    assert all(torch.allclose(adapters[0], adapter, atol=1e-6) for adapter in adapters[1:])
