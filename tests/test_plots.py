"""The figures of the lessons: colors with one meaning, whole steps, whole shares, and no point or name left out."""

import pytest
from course import judged

from grpo_utils.plots import (
    pass_rate_bars,
    reward_curve,
    show_before_and_after,
    show_differences,
    show_points,
    show_reward_and_accuracy,
    show_shares,
)
from grpo_utils.plots.base import DOUBTFUL, GOOD, MEANINGS, NEUTRAL, OTHERS, colors_of
from grpo_utils.plots.rates import VERDICTS
from grpo_utils.plots.runs import run_curves

KEYS = ["reward", "frac_reward_zero_std", "completions/mean_length"]


def curves(keys=KEYS, names=("healthy", "this run"), values=(0.2, 0.4, 0.3)):
    return {key: dict.fromkeys(names, values) for key in keys}


def colors(figure) -> list[str]:
    return [line.get_color() for line in figure.axes[0].lines]


def shown(monkeypatch, draw, *args):
    """The figure that a function displays."""
    figures = []
    for module in ("rates", "runs"):
        monkeypatch.setattr(f"grpo_utils.plots.{module}.show", lambda figure, alt: figures.append(figure))
    draw(*args)
    return figures[0]


def test_what_is_wanted_has_one_color_and_what_is_doubtful_another():
    healthy, fault = colors(run_curves(curves()))
    before, after = colors(run_curves(curves(names=("before the fix", "after the fix"))))
    assert healthy == after == VERDICTS["improved"][0] == GOOD
    assert fault == before == VERDICTS["got worse"][0] == DOUBTFUL
    assert colors(reward_curve([{"rewards/correctness_reward/mean": 0.5}], ["correctness_reward"])) == [GOOD]


def test_a_name_without_a_meaning_has_a_color_of_its_own():
    assert not {GOOD, DOUBTFUL, NEUTRAL} & set(OTHERS)
    assert colors_of(["a", "healthy", "b"]) == [OTHERS[0], GOOD, OTHERS[1]]
    assert set(MEANINGS.values()) == {GOOD, DOUBTFUL, NEUTRAL}


def test_every_run_is_drawn_and_named_even_if_the_colors_repeat():
    names = "abcdefgh"
    figure = run_curves(curves(names=names))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(names)
    assert all(len(axes.lines) == len(names) for axes in figure.axes)
    assert len(pass_rate_bars(dict.fromkeys(names, (0.5,)), 8).axes[0].patches) == 9 * len(names)


@pytest.mark.parametrize("steps", [3, 14, 20])
def test_steps_are_whole_numbers(steps):
    for axes in run_curves(curves(values=[0.5] * steps)).axes:
        assert all(tick == round(tick) for tick in axes.get_xticks())


def test_a_share_is_shown_from_0_to_1_and_a_length_or_a_penalty_is_not():
    keys = ["frac_reward_zero_std", "completions/clipped_ratio", "rewards/truth/mean"]
    for axes in run_curves(curves(keys)).axes:
        assert axes.get_ylim()[0] < 0 and axes.get_ylim()[1] > 1
    assert run_curves(curves(["completions/mean_length"])).axes[0].get_ylim()[1] < 1
    [penalty] = run_curves(curves(["rewards/penalty/mean"], values=(-2.0, 0.5, float("nan")))).axes
    assert penalty.get_ylim()[0] < -2


def test_three_panels_are_below_each_other_so_that_a_phone_shows_them():
    figure = run_curves(curves())
    assert len({axes.get_position().x0 for axes in figure.axes}) == 1
    assert len({axes.get_position().y0 for axes in run_curves(curves(KEYS[:2])).axes}) == 1


def test_no_difference_is_outside_the_scale(monkeypatch):
    axes = shown(monkeypatch, show_differences, {"tiny": 1e-12, "none": 0.0, "huge": 5000.0}, "t").axes[0]
    low, high = axes.get_xlim()
    assert low < 1e-12 and high > 5000


def test_accuracy_has_the_color_of_correct_answers_and_the_reward_that_of_doubt(monkeypatch):
    found = judged(["1"], ["1"], ["1"])
    figure = shown(monkeypatch, show_reward_and_accuracy, [0.1, 2.0], {0: found, 2: found})
    assert [axes.lines[0].get_color() for axes in figure.axes] == [DOUBTFUL, GOOD]


def test_the_parts_of_a_bar_sum_to_one_and_the_text_has_them(capsys, monkeypatch):
    counts = {"wanted": 150, "doubtful": 49, "neither": 1}
    panels = {"asked": {"A": counts, "B": counts}, "swapped": {"A": counts, "B": counts}}
    show_shares(panels, "Answers")
    assert "asked: A, wanted 0.75, doubtful 0.24, neither 0.01; B, wanted" in capsys.readouterr().out
    for axes in shown(monkeypatch, show_shares, panels, "Answers").axes:
        tops = [part.get_y() + part.get_height() for part in axes.patches]
        assert len(tops) == 6 and tops[-2:] == pytest.approx([1, 1])


def test_every_point_has_its_name_and_its_place(monkeypatch):
    [axes] = shown(monkeypatch, show_points, {"small": (79, 15.2), "large": (1370, 48.2)}, "tokens", "%", "Cost").axes
    assert [text.get_text() for text in axes.texts] == ["small", "large"]
    assert axes.get_xlim()[1] > 1370 and axes.get_ylim()[1] > 48.2


def test_a_pair_of_bars_shows_each_name_before_and_after(monkeypatch):
    figure = shown(monkeypatch, show_before_and_after, {"is": (0.79, 0.78), "<reasoning>": (0.39, 0.46)}, "a title")
    before, after = figure.axes[0].containers
    assert [bar.get_width() for bar in before] == [0.79, 0.39] and [bar.get_width() for bar in after] == [0.78, 0.46]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["is", "<reasoning>"]
