"""Lesson 13: its formulas are TRL's, its tables are what the bench stored, and it runs as readers run it."""

import functools
import json
import re
import statistics
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
import test_lesson08 as by_hand
from conftest import ROOT
from lessons import run_with_nbval, said, text_of

sys.path.insert(0, str(ROOT / "scripts"))
import bench_losses

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "13_losses.ipynb"
STORED = json.loads(bench_losses.STORED.read_text(encoding="utf-8"))
NUMBER = r"([+-]?\d+\.\d+)"


@functools.cache
def source_of_formulas() -> str:
    cells = nbformat.read(LESSON, as_version=4).cells
    tagged = [cell.source for cell in cells if "formulas" in cell.metadata.get("tags", [])]
    return "\n\n\n".join(tagged)


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
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from grpo_utils import PROFILES, training_arguments
    from grpo_utils.data.sources import addition_rows

    sizes = dict(num_generations=4, max_completion_length=by_hand.LONGEST, per_device_train_batch_size=16, max_steps=1)
    config = GRPOConfig(**training_arguments(PROFILES["cpu"], output_dir="outputs", **sizes | changes))
    model, tokenizer = by_hand.tiny()
    with by_hand.weights_kept(model):
        trainer = GRPOTrainer(model, rewards, config, Dataset.from_list(addition_rows(40)), processing_class=tokenizer)
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


@pytest.fixture(scope="module")
def book():
    return nbformat.read(LESSON, as_version=4)


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=1200)
    assert result.returncode == 0, result.stdout[-4000:]


def test_every_setting_of_the_method_table_is_one_of_trl(book):
    from trl import GRPOConfig

    rows = re.findall(r"^\| ([\w. ]+) \| `(.+)` \| (\d{4}\.\d{5}) \|$", "\n".join(c.source for c in book.cells), re.M)
    assert [name for name, *_ in rows] == ["GRPO", "Dr. GRPO", "DAPO", "CISPO", "GSPO", "SAPO", "GDPO"]
    for _, settings, _ in rows:
        GRPOConfig(output_dir="unused", use_cpu=True, bf16=False, **eval(f"dict({settings})"))


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "3", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_every_override_arrives(other_family, book):
    assert "Model: tiny-gemma3, on the CPU. Steps of a training run: 3" in other_family
    earned = re.compile(r"^ +reward: .*", re.MULTILINE)
    assert len(earned.findall(other_family)) == 3 and earned.findall(other_family) != earned.findall(said(book))
    assert "clipped:  0.0%" in other_family


# What the text says


def test_the_text_says_what_a_token_weighs(book):
    text, printed = text_of(book), said(book)
    weights = re.findall(r"^(grpo|dapo|dr_grpo) +([\d. ]+)$", printed, re.MULTILINE)
    tokens = {kind: [float(number) for number in numbers.split()] for kind, numbers in weights}
    assert f"a weight of {tokens['grpo'][0]:.3f}, four times as much as in the 40-token completion" in text
    assert tokens["grpo"][0] == pytest.approx(4 * tokens["grpo"][3], rel=0.01)
    assert all(len(set(tokens[kind])) == 1 for kind in ("dapo", "dr_grpo"))


def test_the_text_says_what_the_toys_printed(book):
    text, printed = text_of(book), said(book)
    rows = re.findall(r"^'(group|batch|none)' +group 2: ([-\d. ]+)$", printed, re.MULTILINE)
    last = {scale: float(numbers.split()[-1]) for scale, numbers in rows}
    assert f"has an advantage of {last['group']:.2f}, a stronger push than the -0.87" in text
    assert re.search(r"^'group' +group 1: +0\.87 +-0\.87", printed, re.MULTILINE)
    assert f"it has {last['batch']:.2f} or {last['none']:.2f}" in text
    [one, both] = re.findall(rf"sum_then_normalize: +{NUMBER}\n  normalize_then_sum: +{NUMBER}", printed)
    assert one[0] == both[0] and f"the same advantage, {one[0]}" in text
    assert f"the winner of both rewards has {both[1]}, and the winner of one has {one[1]}" in text
    assert f"GSPO sees {re.search(rf'ratio of the completion: +{NUMBER}', printed)[1]}" in text


def runs(printed: str) -> dict:
    """The three training runs: losses, rewards, clipped tokens, accuracy and its interval."""
    row = rf"^([\w ]+)\n  loss: +{NUMBER}, then {NUMBER}\n  reward: +{NUMBER}, then {NUMBER}\n  clipped: +(\S+)\n"
    row += rf"  accuracy: {NUMBER} \({NUMBER} to {NUMBER}\)"
    return {name: numbers for name, *numbers in re.findall(row, printed, re.MULTILINE)}


def test_the_text_says_what_the_three_runs_did(book):
    text, found = text_of(book), runs(said(book))
    grpo, dapo, four = (found[name] for name in ("grpo", "dapo", "4 updates"))
    assert grpo[:2] == ["0.000", "0.000"] and "but the loss was 0.000 at the first and the last step" in text
    assert f"With `grpo`, the mean reward rose from {grpo[2]} to {grpo[3]}" in text
    assert f"first loss of {dapo[0]}" in text
    assert grpo[4] == dapo[4] == "0.0%" and f"With four updates per batch, {four[4]} of the tokens were." in text
    assert f"and reached {float(four[5]):.1%}." in text
    assert f"Accuracy is {float(dapo[5]):.1%} with `dapo` and {float(grpo[5]):.1%} with `grpo`." in text
    assert float(grpo[7]) < float(dapo[6]) and "The intervals do not overlap" in text


def test_the_text_says_what_kl_was_printed(book):
    assert re.search(r"^mean KL: +3,584,913\nwithout that token: +0$", said(book), re.MULTILINE)
    assert "A KL in the millions means a broken policy. | One token is enough" in text_of(book)


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


def test_every_variant_was_trained_with_every_seed():
    found = sorted((row["variant"], row["seed"]) for row in STORED["rows"])
    assert found == sorted((name, seed) for name in bench_losses.VARIANTS for seed in bench_losses.SEEDS)


def test_the_bench_continues_where_it_stopped(tmp_path, monkeypatch):
    path, trained = tmp_path / "losses.json", []

    def interrupted_before_the_third(name, seed):
        if len(trained) == 2 and not interruptions:
            interruptions.append(name)
            raise KeyboardInterrupt
        trained.append((name, seed))
        return dict(variant=name, seed=seed)

    interruptions = []
    monkeypatch.setattr(bench_losses, "STORED", path)
    monkeypatch.setattr(bench_losses, "run", interrupted_before_the_third)
    with pytest.raises(KeyboardInterrupt):
        bench_losses.measure()
    monkeypatch.setattr(
        bench_losses, "run", lambda name, seed: trained.append((name, seed)) or dict(variant=name, seed=seed)
    )
    bench_losses.measure()
    assert trained == [(name, seed) for seed in bench_losses.SEEDS for name in bench_losses.VARIANTS]
    assert len(json.loads(path.read_text(encoding="utf-8"))["rows"]) == len(trained)


def test_the_setting_of_the_bench_is_that_of_the_lesson(book):
    """With seed 0, the lesson's three runs are rows of the bench."""
    found = runs(said(book))
    for name, row in (("grpo", "grpo"), ("dapo", "dapo"), ("4 updates", "4 updates, dapo")):
        assert float(found[name][5]) == pytest.approx(bench_losses.values_of(STORED, row, "accuracy")[0], abs=0.0005)


def test_the_text_says_what_the_seeds_show(book):
    text = text_of(book)

    def change(name: str, key: str = "accuracy"):
        return bench_losses.difference(STORED, name, key)

    first = SHOWN[: SHOWN.index("any format, grpo")]
    assert len(first) == 6 and all(change(name, key).covers_zero for name in first for key in ("accuracy", "length"))
    assert f"The first six rows show no difference, but `grpo` could still lose {-change('grpo').low:.2f}." in text
    norms = [statistics.mean(bench_losses.values_of(STORED, name, "grad_norm")) for name in ("dr_grpo", "dapo")]
    assert 0.6 < norms[0] / norms[1] < 0.72 and "gradient of `dr_grpo` is a third smaller" in text
    assert f"Strict accuracy is {-change('any format, grpo').value:.3f} lower with `grpo` than with `dapo`" in text
    assert change("any format, grpo").high < 0 and change("any format, grpo", "length").covers_zero
    assert f"the change of {-change('any format, grpo', 'length').value:.1f} tokens is not shown" in text
    assert change("any format, grpo", "any_format").covers_zero
    earned = [
        statistics.mean(bench_losses.values_of(STORED, f"any format, {mean}", "any_format")) for mean in MEANS[::2]
    ]
    assert all(f"both earn the reward with {rate:.0%} of their answers" in text for rate in earned)
    assert 0.05 * 2 * len(SHOWN) < 2 and f"one or two of {2 * len(SHOWN)} intervals would exclude 0 by chance" in text
    rates = [statistics.mean(bench_losses.values_of(STORED, name, "accuracy")) for name in ("dapo", "4 updates, dapo")]
    assert f"Four updates per batch lowered accuracy from {rates[0]:.0%} to {rates[1]:.0%}" in text
    assert change("4 updates, dapo").high < 0
    unclipped = sorted(bench_losses.values_of(STORED, "4 updates, no clip", "accuracy"))
    assert f"one of six seeds collapsed to {unclipped[0]:.1%}" in text and unclipped[1] > 0.7
    on_policy = [row["accuracy"] for row in STORED["rows"] if row["variant"] in (*first, "dapo")]
    assert min(on_policy) > 0.8 and "no on-policy run collapsed" in text
