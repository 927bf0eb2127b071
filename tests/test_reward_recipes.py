"""The recipes of docs/rewards.md run as they are printed: right, fast on any text, and sound in the reward lab."""

import doctest
import time
from functools import partial
from itertools import pairwise

import pytest
import regex
from reward_lists import BLOCKS, RECIPES, recipe, section

from grpo_check import probe

#: Columns of the row that each hostile text is scored for.
COLUMNS = {"nums": [3, 4, 5], "target": 32, "answer": "42", "script": "LATIN", "completion_ids": [0] * 20}


def score(name, completions):
    columns = {column: [value] * len(completions) for column, value in COLUMNS.items()}
    return RECIPES[name][name](completions=completions, prompts=["?"] * len(completions), **columns)


def test_every_recipe_of_the_page_is_tried():
    assert len(BLOCKS) == len(RECIPES) == section("Recipes").count("\n### ")


@pytest.mark.parametrize("name", RECIPES)
def test_the_example_of_a_recipe_says_what_comes_out(name):
    names = RECIPES[name]
    pages = [text for value in names.values() if ">>>" in (text := getattr(value, "__doc__", None) or "")]
    tests = [doctest.DocTestParser().get_doctest(page, dict(names), name, None, 0) for page in pages]
    runner = doctest.DocTestRunner()
    assert sum(runner.run(test).attempted for test in tests) >= 1 and not runner.failures


#: What a policy, or somebody who wants to stop a run, may write.
UNITS = [
    "9", " ", ".", ",", "(", "[", "{", "<", "</answer>", "<answer>", "<think>", "</think>", "$", "-", "a", "\n", "/",
    "*",
    "```", "```python\n", "\\boxed{", "((a:=", "not ", "lambda:", "f'{", "if 1:\n ", "1+", "1**", "9**9**9", "9**", "#",
    "é", "加", "\0", "\ud800", "'", '"""',
]  # fmt: skip
WRAPS = ["{}", "<answer>{}</answer>", "<think>{}</think>42", "```python\n{}\n```", "<answer>{}", "({}", "{}$"]
SHAPES = [None, [], {}, 3, [None], [{}], [{"role": "assistant"}], [{"role": "assistant", "content": None}]]
SHAPES += [
    [{"role": "assistant", "content": [{"type": "text", "text": "42"}]}],
    [{"role": "tool", "content": "42"}],
    (),
    "",
    b"42",
]


@pytest.mark.parametrize("name", RECIPES)
def test_no_text_makes_a_recipe_raise_or_hang(name):
    score(name, ["( ", "x+41"])  # the first expression imports math-verify
    for unit in UNITS:
        for wrap in WRAPS:
            for times in (1, 30, 3000):
                started = time.process_time()
                scores = score(name, [wrap.format(unit * times)])
                assert time.process_time() - started < 0.25, (unit, wrap, times)
                assert isinstance(scores[0], float) and -1.0 <= scores[0] <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_time_grows_with_the_length_and_not_faster(name):
    for unit in ("9", "9 ", "a ", "(", "加", "<think>", "```"):
        for wrap in ("{}", "<answer>{}</answer>", "```python\n{}\n```"):
            short, long = (least_seconds(name, wrap.format(unit * times)) for times in (10_000, 80_000))
            assert long < 3 * 8 * short + 0.02, (unit, wrap, short, long)


def least_seconds(name, text):
    """The shortest processor time of three calls."""
    seconds = []
    for _ in range(3):
        started = time.process_time()
        score(name, [text])
        seconds.append(time.process_time() - started)
    return min(seconds)


@pytest.mark.parametrize("name", RECIPES)
def test_any_shape_of_completion_is_scored(name):
    scores = [(shape, score(name, [shape])[0]) for shape in SHAPES]
    wrong = [pair for pair in scores if not (isinstance(pair[1], float) and -1.0 <= pair[1] <= 1.0)]
    assert not wrong, "\n".join(map(str, wrong))


# Countdown


@pytest.mark.parametrize(
    "equation",
    [
        "9**9**9", "9**9**9**9", "(3+5)*4**99999999", "3**4/5", "9" * 99, "(" * 50 + "3" + ")" * 49, "3/(4-4)",
        "", " ", "()",
        "3*4+5*4", "32", "3+5*4", "(3+5)*4*1", "3.0+5", "(3+5)//4", "(3+5)<<4", "-(3+5)*-4", "(3+5)*4 #",
        "(3+5)*4 = 32",
        "__import__('os')", "3+5*4 or 32", "True+5", "3 4 5", "٣+5*4", "(3+5)*４", "0x3+5*4", "3_+5*4", "03+5*4",
        "3(5)*4",
        "(3,4,5)",
    ],
)  # fmt: skip
def test_an_equation_that_breaks_the_rules_is_refused_at_once(equation):
    solves = RECIPES["countdown_reward"]["solves"]
    started = time.process_time()
    for _ in range(100):
        assert not solves(equation, [3, 4, 5], 32)
    assert time.process_time() - started < 100 * 500e-6


@pytest.mark.parametrize(
    ("equation", "nums", "target"),
    [
        ("(3+5)*4", [3, 4, 5], 32), (" 4 * ( 5 + 3 ) ", [3, 4, 5], 32), ("8/(3-8/3)", [3, 3, 8, 8], 24),
        ("7-7", [7, 7], 0),
        ("(((((3+5)*4))))", [3, 4, 5], 32), ("6/(1-3/4)", [1, 3, 4, 6], 24), ("3-5", [3, 5], -2),
    ],
)  # fmt: skip
def test_an_equation_that_reaches_the_target_is_paid(equation, nums, target):
    assert RECIPES["countdown_reward"]["solves"](equation, nums, target)


# The others


def test_thinking_may_be_there_or_not_and_the_answer_has_to():
    texts = [
        "42",
        "<think>6 * 7</think>42",
        "6 * 7</think>42",
        "<think>42",
        "<think>6 * 7</think>",
        "<think>42</think>41",
    ]
    assert score("optional_thinking_reward", texts) == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]


def test_letters_of_another_script_cost_their_share():
    assert score("language_reward", ["Größe", "abc где", "42", ""]) == [1.0, 0.5, 0.0, 0.0]


def test_repetition_costs_more_the_more_there_is():
    once, often = score("repetition_penalty", ["a b c d e f", "a b c " * 40])
    assert once == 0.0 and -1.0 < often < -0.9


def test_one_block_that_parses_is_code():
    blocks = ["```python\nprint(1)\n```", "So: ```python\nx = 1\n``` Done.", "```python\n\n```", "```\nx = 1\n```",
              "```python\nx = 1\n``````python\ny = 1\n```", "```python\nx = (\n```", "x = 1"]  # fmt: skip
    assert score("code_format_reward", blocks) == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_a_pattern_sees_several_lines():
    assert recipe("pattern_reward", PATTERN=regex.compile("<a>.*</a>", regex.DOTALL))(["<a>1\n2</a>"]) == [1.0]


def test_a_pattern_that_takes_years_is_cut_off():
    started = time.perf_counter()
    reward = recipe("pattern_reward", PATTERN=regex.compile(r"(a+)+b"))
    assert reward(["a" * 5_000, "aab"]) == [0.0, 1.0] and time.perf_counter() - started < 2


def test_json_is_checked_for_its_form_and_only_up_to_a_length():
    wrong = ['{"age": "3"}', '{"age": 3} ok', "[" * 900 + "]" * 900, '{"age": 3, "age": 4}', '{"age": NaN}']
    assert score("schema_reward", ['{"age": 3}', *wrong]) == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert score("schema_reward", ['{"age": 3' + " " * 20_000 + "}"]) == [0.0]


def test_length_counts_tokens_and_not_characters():
    assert score("target_length_reward", ["x" * 999, "x"]) == [pytest.approx(0.2)] * 2


def test_lists_of_connectives_and_repeated_steps_are_one_step_at_most():
    form = "<reasoning>{}</reasoning><answer>42</answer>"
    listed, repeated = "therefore thus because since consequently first", "Add 15 and 27.\n" * 9
    steps = "15 plus 20 is 35.\nThen add 7 more.\nThat makes 42."
    texts = [form.format(reasoning) for reasoning in (listed, repeated, steps)]
    assert score("reasoning_steps_reward", texts) == [pytest.approx(1 / 3), pytest.approx(1 / 3), 1.0]


def test_diversity_compares_within_a_prompt_only():
    said = ["The answer is 42.", "The answer is 42!", "The answer is 42."]
    diversity = RECIPES["diversity_penalty"]["diversity_penalty"]
    assert diversity(said, prompts=["q", "q", "p"]) == [-1.0, -1.0, 0.0]


@pytest.mark.parametrize(
    "said", ["B", "b", "(B)", "B.", "[B]", "B) Paris", "B: Paris", "The answer is B.", "Option B", "**B**", "B) a dog"]
)
def test_a_choice_in_many_writings(said):
    assert RECIPES["choice_reward"]["letter"](said) == "B"


@pytest.mark.parametrize(
    "said",
    [
        "A or B",
        "B) Paris, C) Rome",
        "B and C",
        "AB",
        "",
        "42",
        "A dog",
        "B) not C",
        "none",
        "A) is wrong",
        "A: incorrect",
        "A) actually C",
    ],
)
def test_no_choice_or_two(said):
    assert RECIPES["choice_reward"]["letter"](said) is None


def test_weights_fade_as_a_part_is_learned_and_stay_pure():
    weight_now = RECIPES["adaptive_reward"]["weight_now"]
    history = [{"rewards/form/mean": step / 10} for step in range(11)]
    faded = [weight_now("form", 1.0, history[:n]) for n in range(12)]
    assert faded[0] == 1.0 == weight_now("right", 1.0, history)
    assert all(later < earlier for earlier, later in pairwise(faded[1:]))
    assert weight_now("form", 2.0, [{"rewards/form/mean": 1.0}] * 20) == 0.5


#: How the lab is told what each recipe pays for.
PROBED = {
    "countdown_reward": {
        "answers": ["(3 + 5) * 4", "9 - 2 * 3"], "columns": {"nums": [[3, 4, 5], [2, 3, 9]], "target": [32, 3]},
    },
    "optional_thinking_reward": {"answers": ["42", "1250"], "tags": ["<think>", "</think>", "", ""]},
    "language_reward": {"answers": None, "examples": ["加 加 加"]},
    "repetition_penalty": {"answers": None, "examples": ["no " * 50]},
    "code_format_reward": {"answers": None, "examples": ["```python\nprint(42)\n```"]},
    "pattern_reward": {"answers": None, "examples": ["Reason: 15 + 27.\nAnswer: 42"]},
    "schema_reward": {"answers": None, "examples": ['{"age": 3}']},
    "target_length_reward": {"answers": None},
    "reasoning_steps_reward": {"answers": None, "examples": ["<think>Add 15 and 27. So it is 42.</think>42"]},
    "unwanted_phrases_penalty": {"answers": None, "examples": ["As an AI, I cannot say."]},
    "diversity_penalty": {"answers": None},
    "choice_reward": {"answers": ["A", "C"]},
    "adaptive_reward": {"answers": ["42", "1250"]},
}  # fmt: skip


def in_latin(reward, completions, **kwargs):
    return reward(completions=completions, script=["LATIN"] * len(completions))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_the_lab_finds_no_error_in_a_recipe(name):
    reward = RECIPES[name][name]
    if name == "language_reward":  # its one column is what it asks for, not a gold answer
        reward = partial(in_latin, reward)
    report = probe(reward, **PROBED[name])
    assert not [finding for finding in report.findings if finding.severity == "error"], str(report)
