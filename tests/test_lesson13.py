"""Lesson 13: its formulas are TRL's, its tables are what the bench stored, and it runs as readers run it."""

import functools
import json
import re
import statistics
from types import SimpleNamespace

import bench_losses
import bench_reuse
import bench_sft
import benches
import losses_by_hand as by_hand
import nbformat
import pytest
from conftest import ROOT
from lessons import formulas_of, run_other_family, run_with_nbval

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


def trl_gradient(changes: dict, parts: int):
    """The loss and the gradient of one off-policy batch in parts, by TRL."""
    trainer = by_hand.trainer_for(by_hand.tiny()[0], parts, **dict(epsilon_high=0.2) | changes)
    trainer.current_gradient_accumulation_steps = parts
    trainer.model.train()
    pieces = by_hand.parts_of(by_hand.batch_of(), parts)
    return by_hand.gradient(sum(trainer._compute_loss(by_hand.tiny()[0], piece) for piece in pieces))


def off_by(names: SimpleNamespace, mean: str, kind: str, changes: dict) -> float:
    """How far the lesson's loss is from TRL's, in two parts."""
    import torch

    pieces = by_hand.parts_of(by_hand.batch_of(), 2)
    batch = {key: torch.cat([piece[key] for piece in pieces]) for key in pieces[0] if pieces[0][key].dim()}
    logps = by_hand.lesson().token_logps(by_hand.tiny()[0], batch)
    losses = names.token_loss(kind, logps, batch["old_per_token_logps"], batch["advantages"].unsqueeze(1))
    loss = names.batch_loss(mean, losses, batch["completion_mask"], 2, by_hand.LONGEST)
    return by_hand.difference(by_hand.gradient(loss), trl_gradient(changes, 2))


MEANS = ("grpo", "bnpo", "dapo", "dr_grpo")
LOSSES = [(mean, "clip", dict(loss_type=mean)) for mean in MEANS]
LOSSES += [("grpo", "sapo", dict(loss_type="sapo")), ("dapo", "cispo", dict(loss_type="cispo", epsilon_high=5.0))]


@pytest.mark.parametrize(("mean", "kind", "changes"), LOSSES, ids=lambda part: part if isinstance(part, str) else "")
def test_a_loss_of_the_lesson_is_trls(mean, kind, changes):
    assert off_by(formulas(), mean, kind, changes) < 1e-5


@pytest.mark.parametrize(
    ("mean", "kind", "old", "new"),
    [
        ("grpo", "clip", "summed / real.sum(1)", "summed / real.sum()"),
        ("bnpo", "clip", "summed.sum() / real.sum() / parts", "summed.sum() / mask.sum()"),
        ("dapo", "clip", "summed.sum() / mask.sum()", "summed.sum() / real.sum() / parts"),
        ("dr_grpo", "clip", "* longest", "* 10"),
        ("dapo", "cispo", ".detach()", ""),
        ("grpo", "sapo", "1.0, 1.05", "1.05, 1.0"),
        ("grpo", "clip", "-torch.min(", "-torch.max("),
    ],
)
def test_a_changed_formula_is_found(mean, kind, old, new):
    [changes] = [changes for *names, changes in LOSSES if names == [mean, kind]]
    assert off_by(formulas(old, new), mean, kind, changes) > 1e-5


def test_the_default_limits_the_weights_of_cispo_to_epsilon():
    names = formulas("max=5.0", "max=0.2")
    assert off_by(names, "dapo", "cispo", dict(loss_type="cispo", epsilon_high=None)) < 1e-5


def test_the_ratio_of_gspo_is_trls():
    import torch

    batch = by_hand.batch_of()
    log_ratio = by_hand.sampled()["logps"] - batch["old_per_token_logps"]
    ratios = [row[real.bool()].mean().exp() for row, real in zip(log_ratio, batch["completion_mask"], strict=True)]
    ratios, advantages = torch.stack(ratios), batch["advantages"]
    loss = -torch.min(ratios * advantages, ratios.clamp(0.8, 1.2) * advantages).mean()
    assert ((ratios - 1).abs() > 0.01).any()
    trainer = by_hand.trainer_for(
        by_hand.tiny()[0], 1, epsilon_high=0.2, loss_type="grpo", importance_sampling_level="sequence"
    )
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    assert trainer._compute_loss(by_hand.tiny()[0], batch).item() == pytest.approx(loss.item(), abs=1e-6)


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


def test_the_three_divisors_are_trls():
    import torch

    for scale in ("group", "batch", "none"):
        advantages, scores, tied = advantages_of([half_tied], scale_rewards=scale)
        source = source_of_formulas().replace(
            "[[3.0, 0.0, 3.0, 0.0], [3.0, 3.0, 3.0, 2.9]]", str(scores[:, :, 0].tolist())
        )
        names = {}
        exec(source, names)
        ours = names["centered"] / names["DIVISORS"][scale]
        assert torch.allclose(ours.flatten(), advantages, atol=1e-5)
        assert tied == (0.0 if scale == "batch" else 0.5)


def test_gdpo_is_trls_and_its_share_of_tied_groups_does_not_count_them():
    import torch

    names = formulas()
    for weights in ([1.0, 1.0], [1.0, 0.3]):
        rewards = [half_tied, by_length]
        advantages, scores, _ = advantages_of(
            rewards, multi_objective_aggregation="normalize_then_sum", reward_weights=weights
        )
        separate = (names.normalize(scores, 1) * torch.tensor(weights)).sum(2)
        assert torch.allclose(names.normalize(separate, 0, 1).flatten(), advantages, atol=1e-4)
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

    rows = re.findall(r"^\| ([\w. ]+) \| `(.+)` \| (\d{4}\.\d{5}) \|$", "\n".join(c.source for c in book.cells), re.M)
    assert [name for name, *_ in rows] == ["GRPO", "Dr. GRPO", "DAPO", "CISPO", "GSPO", "SAPO", "GDPO"]
    for _, settings, _ in rows:
        GRPOConfig(output_dir="unused", use_cpu=True, bf16=False, **eval(f"dict({settings})"))


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=3)


def test_every_override_arrives(other_family, printed):
    assert re.search(r"tiny-gemma3.*\b3$", other_family, re.MULTILINE)
    earned = re.compile(r"^ +reward: .*", re.MULTILINE)
    assert len(earned.findall(other_family)) == 3 and earned.findall(other_family) != earned.findall(printed)
    assert "clipped:  0.0%" in other_family


# What the lesson must show


def test_only_grpo_weighs_tokens_by_the_length_of_their_completion(printed):
    weights = re.findall(r"^(grpo|dapo|dr_grpo) +([\d. ]+)$", printed, re.MULTILINE)
    tokens = {kind: [float(number) for number in numbers.split()] for kind, numbers in weights}
    assert tokens["grpo"][0] == pytest.approx(4 * tokens["grpo"][3], rel=0.01)
    assert all(len(set(tokens[kind])) == 1 for kind in ("dapo", "dr_grpo"))


def test_the_toys_show_what_the_divisor_and_the_aggregation_change(printed):
    rows = re.findall(r"^'(group|batch|none)' +group (\d): ([-\d. ]+)$", printed, re.MULTILINE)
    lost = {(scale, number): min(map(float, numbers.split())) for scale, number, numbers in rows}
    assert lost["group", "2"] < lost["group", "1"] < -0.5 < -0.1 < max(lost["batch", "2"], lost["none", "2"])
    [one, both] = re.findall(rf"sum_then_normalize: +{NUMBER}\n  normalize_then_sum: +{NUMBER}", printed)
    assert one[0] == both[0] and float(one[1]) < float(both[1])


def runs(text: str) -> dict:
    """The three training runs: losses, rewards, clipped tokens and accuracy."""
    row = rf"^([\w ]+)\n  loss: +{NUMBER}, then {NUMBER}\n  reward: +{NUMBER}, then {NUMBER}\n  clipped: +(\S+)%\n"
    row += rf"  accuracy: {NUMBER} "
    return {name: list(map(float, numbers)) for name, *numbers in re.findall(row, text, re.MULTILINE)}


def test_the_loss_is_0_while_the_reward_rises_and_only_reused_samples_are_clipped(printed):
    found = runs(printed)
    assert list(found) == ["grpo", "dapo", "4 updates"]
    assert max(map(abs, found["grpo"][:2])) < 0.001 < abs(found["dapo"][0])
    assert all(last > first + 1 for _, _, first, last, *_ in found.values())
    assert found["grpo"][4] == found["dapo"][4] == 0 < found["4 updates"][4]


def test_one_token_can_make_the_kl_huge(printed):
    huge, rest = re.search(r"^mean KL: +(\S+)\nwithout that token: +(\S+)$", printed, re.MULTILINE).groups()
    assert int(huge.replace(",", "")) > 1e6 and rest == "0"


# The table of seeds is what the bench stored


def short(difference, digits: int) -> str:
    """A difference and half of its interval, as the lesson writes them; bold if the interval excludes 0."""
    value, low, high = difference
    text = f"{value:.{digits}f}±{(high - low) / 2:.{digits}f}"
    text = re.sub(r"^-(0\.0+±)", r"\1", text)
    return text if difference.covers_zero else f"**{text}**"


def short_row(name: str) -> str:
    accuracy, length = (bench_losses.difference(STORED, name, key) for key in ("accuracy", "length"))
    return f"| {name} | {short(accuracy, 3)} | {short(length, 1)} |"


ON_THE_PAGE_ALONE = ("bnpo, 4 parts", "4 updates, clip 0.28")
SHOWN = [name for name, variant in bench_losses.VARIANTS.items() if variant.base and name not in ON_THE_PAGE_ALONE]


def test_the_table_of_the_lesson_is_what_is_stored(book):
    text = "\n".join(cell.source for cell in book.cells)
    assert [row for name in SHOWN if (row := short_row(name)) not in text] == []


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
    def change(name: str, key: str = "accuracy"):
        return bench_losses.difference(STORED, name, key)

    first = SHOWN[: SHOWN.index("any format, grpo")]
    assert len(first) == 6 and all(change(name, key).covers_zero for name in first for key in ("accuracy", "length"))
    norms = [statistics.mean(bench_losses.values_of(STORED, name, "grad_norm")) for name in ("dr_grpo", "dapo")]
    assert 0.6 < norms[0] / norms[1] < 0.72
    assert change("any format, grpo").high < 0 and change("any format, grpo", "length").covers_zero
    assert change("any format, grpo", "any_format").covers_zero
    assert change("4 updates, dapo").high < 0
    unclipped = sorted(bench_losses.values_of(STORED, "4 updates, no clip", "accuracy"))
    assert unclipped[0] < 0.1 and unclipped[1] > 0.7
    on_policy = [row["accuracy"] for row in STORED["rows"] if row["variant"] in (*first, "dapo")]
    assert min(on_policy) > 0.8
