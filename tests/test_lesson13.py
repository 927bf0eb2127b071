"""Lesson 13: its formulas are TRL's, its tables are what the benches stored, and it runs as readers run it."""

import functools
import json
import re
import statistics
from collections.abc import Callable
from types import SimpleNamespace

import bench_losses
import bench_reuse
import bench_sft
import benches
import losses_by_hand as by_hand
import nbformat
import pytest
from course import ROOT
from lessons import alt_texts, defined_by, formulas_of, run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "13_losses.ipynb"
STORED = json.loads(bench_losses.STORED.read_text(encoding="utf-8"))
NUMBER = r"([+-]?\d+\.\d+)"


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


def off_by(token_loss: Callable, names: SimpleNamespace, kind: str, changes: dict) -> float:
    """How far a loss of one token, averaged as the lesson averages it, is from TRL's."""
    batch = by_hand.batch_of()
    logps = by_hand.lesson().token_logps(by_hand.tiny()[0], batch)
    losses = token_loss(logps, batch["old_per_token_logps"], batch["advantages"].unsqueeze(1))
    loss = names.batch_loss(kind, losses, batch["completion_mask"], by_hand.LONGEST)
    return by_hand.difference(by_hand.gradient(loss), trl_gradient(changes))


@pytest.mark.parametrize("kind", ["grpo", "dapo", "dr_grpo"])
def test_a_loss_of_the_lesson_is_trls(kind):
    names = formulas()
    assert off_by(names.token_loss, names, kind, dict(loss_type=kind)) < 1e-5


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("grpo", "summed / mask.sum(1)", "summed / mask.sum()"),
        ("dapo", "summed.sum() / mask.sum()", "(summed / mask.sum(1)).mean()"),
        ("dr_grpo", "* longest", "* 10"),
        ("grpo", "-torch.min(", "-torch.max("),
        ("grpo", "clamp(0.8, 1.2)", "clamp(0.8, 1.28)"),
    ],
)
def test_a_changed_formula_is_found(kind, old, new):
    names = formulas(old, new)
    assert off_by(names.token_loss, names, kind, dict(loss_type=kind)) > 1e-5


# The appendix describes the variants of TRL


@pytest.mark.parametrize(("cap", "epsilon_high"), [(5.0, 5.0), (0.2, None)], ids=["advised", "default"])
def test_cispo_limits_the_ratio_and_keeps_a_push_on_every_token(cap, epsilon_high):
    def loss(logps, old, advantages):
        return -(logps - old).exp().clamp(max=cap).detach() * advantages * logps

    assert off_by(loss, formulas(), "dapo", dict(loss_type="cispo", epsilon_high=epsilon_high)) < 1e-5


def test_sapo_lets_the_push_fade():
    import torch

    def loss(logps, old, advantages):
        heat = torch.where(advantages > 0, 1.0, 1.05)
        return -torch.sigmoid(heat * ((logps - old).exp() - 1)) * 4 / heat * advantages

    assert off_by(loss, formulas(), "grpo", dict(loss_type="sapo")) < 1e-5


def test_the_ratio_of_gspo_is_trls():
    import torch

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
    import torch

    trainer, batch = one_step(rewards, **changes)
    scores = torch.tensor([list(trainer._logs["rewards"][reward.__name__]) for reward in rewards])
    return batch["advantages"], scores.T.view(4, 4, -1), trainer.state.log_history[0]["frac_reward_zero_std"]


def test_scale_rewards_selects_the_deviation_that_divides_the_advantage():
    import torch

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
    import torch

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


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)


def test_every_setting_of_the_method_table_is_one_of_trl(book):
    from trl import GRPOConfig

    text = "\n".join(cell.source for cell in book.cells)
    rows = re.findall(
        r"^\| \[([\w. ]+)\]\(https://arxiv.org/abs/\d{4}\.\d{5}\) \| .+ \| `(.+)` \|$", text, re.MULTILINE
    )
    assert [name for name, _ in rows] == ["CISPO", "GSPO", "SAPO", "GDPO"]
    for _, settings in rows:
        GRPOConfig(output_dir="unused", use_cpu=True, bf16=False, **eval(f"dict({settings})"))


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=3)


ROW = re.compile(rf"^num_iterations=(\d): reward {NUMBER} to {NUMBER}$", re.MULTILINE)


def test_every_override_arrives(other_family, printed):
    assert re.search(r"tiny-gemma3.*\b3$", other_family, re.MULTILINE)
    assert len(ROW.findall(other_family)) == 2 and ROW.findall(other_family) != ROW.findall(printed)


# What the lesson must show


def test_both_runs_learn_and_only_reused_samples_are_clipped(printed, book):
    assert [updates for updates, *_ in ROW.findall(printed)] == ["1", "4"]
    assert all(float(last) > float(first) + 1 for _, first, last in ROW.findall(printed))
    [text] = [text for text in alt_texts(book) if text.startswith("Clipped tokens by step")]
    once, four = map(float, re.findall(r"([\d.]+)%", text))
    assert once == 0 < four


def test_the_ratio_of_the_figure_leaves_1_only_if_a_batch_is_used_again(book):
    [text] = [text for text in alt_texts(book) if text.startswith("Ratio by update")]
    once, four = map(float, re.findall(NUMBER, text))
    assert once == 1 < 1.2 < four


def test_only_grpo_weighs_tokens_by_the_length_of_their_completion(book):
    [text] = [text for text in alt_texts(book) if text.startswith("Token weight")]
    weights = {
        name: (float(of_10), float(of_40)) for name, of_10, of_40 in re.findall(rf"(\w+) {NUMBER} to {NUMBER}", text)
    }
    assert weights["grpo"][0] == pytest.approx(4 * weights["grpo"][1], rel=0.1)
    assert all(len(set(weights[kind])) == 1 for kind in ("dapo", "dr_grpo"))


# The tables are what the benches stored


def correct_answers(rows: list[dict]) -> list[int]:
    """The number of correct answers of each seed."""
    return [round(row["accuracy"] * bench_losses.PROMPTS) for row in sorted(rows, key=lambda row: row["seed"])]


@pytest.fixture(scope="module")
def tables(book) -> dict:
    """What the cells with the tables define; only printing is left out."""
    given = dict(show_table=lambda *_, **__: {"4 updates": None})
    for name in ("ONE_UPDATE", "FOUR_UPDATES", "LIKE_GRPO", "EQUAL_SAMPLES"):
        given |= defined_by(book, f"{name} = {{", **given)
    return given


@pytest.mark.parametrize(
    ("table", "baseline", "prefix"),
    [("ONE_UPDATE", "dapo", ""), ("FOUR_UPDATES", "dapo", "4 updates, "), ("LIKE_GRPO", "grpo", "4 updates, ")],
)
def test_a_table_has_what_the_bench_stored_with_that_baseline(tables, table, baseline, prefix):
    for name, counts in tables[table].items():
        assert counts == correct_answers([row for row in STORED["rows"] if row["variant"] == prefix + name])
        assert name == baseline or bench_losses.VARIANTS[prefix + name].base == prefix + baseline


@pytest.mark.parametrize(
    ("table", "steps"), [("EQUAL_SAMPLES", bench_reuse.SAMPLE_STEPS), ("EQUAL_TIME", bench_reuse.TIME_STEPS)]
)
def test_the_tables_of_reuse_are_what_the_bench_stored(tables, table, steps):
    rows = benches.read_stored(bench_reuse.STORED)["rows"]
    for (_, counts), updates in zip(tables[table].items(), (1, 4), strict=True):
        rates = bench_reuse.accuracies(rows, updates, bench_reuse.best_rates(rows)[updates], steps[updates])
        assert counts == [round(rate * bench_reuse.PROMPTS) for rate in rates]


def test_a_table_prints_the_numbers_of_the_page(printed):
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("settings.md", "results.md")]
    rows = re.findall(rf"^[\w ,.]{{12}}  +(0\.\d{{3}})  ({NUMBER} \(.+\))$", printed, re.MULTILINE)
    assert len(rows) == 6 + 4 + 3 + 2
    assert [row[:2] for row in rows if not all(any(text in page for page in pages) for text in row[:2])] == []


def test_the_page_is_what_is_stored():
    page = bench_losses.PAGE.read_text(encoding="utf-8")
    assert page.count(bench_losses.section(STORED)) == 1


@pytest.mark.parametrize("bench", [bench_reuse, bench_sft], ids=lambda bench: bench.TITLE)
def test_the_results_have_what_the_bench_stored(bench):
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page.count(f"## {bench.TITLE}\n{bench.section(benches.read_stored(bench.STORED))}") == 1


def test_every_variant_was_trained_with_every_seed():
    found = sorted((row["variant"], row["seed"]) for row in STORED["rows"])
    assert found == sorted((name, seed) for name in bench_losses.VARIANTS for seed in bench_losses.SEEDS)


def test_the_seeds_show_what_the_lesson_concludes():
    for name, variant in bench_losses.VARIANTS.items():
        alone = name in ("any format, grpo", "4 updates, dapo")  # on the page, but not in the lesson's tables
        assert not variant.base or bench_losses.difference(STORED, name, "accuracy").covers_zero == (not alone)
    norms = [statistics.mean(bench_losses.values_of(STORED, name, "grad_norm")) for name in ("dr_grpo", "dapo")]
    assert norms[0] < norms[1]
    unclipped = sorted(bench_losses.values_of(STORED, "4 updates, no clip", "accuracy"))
    assert unclipped[0] < 0.1 and unclipped[1] > 0.7
    rows = benches.read_stored(bench_reuse.STORED)["rows"]
    best = bench_reuse.best_rates(rows)
    assert bench_reuse.difference(rows, best, bench_reuse.SAMPLE_STEPS).low > 0
    assert bench_reuse.difference(rows, best, bench_reuse.TIME_STEPS).high < 0
    assert best == {1: 2e-3, 4: 1e-3}
