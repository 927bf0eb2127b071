"""Preflight finds a thinking tag that the prompt opens, or closes, for the model, and says which reward misses it."""

from pathlib import Path

import pytest
import regex
import trl
from datasets import Dataset
from grpo_check.preflights import thinking
from grpo_check.preflights.planned import plan
from grpo_check.preflights.report import PreflightReport
from preflight_runs import ROWS, check, load_tokenizer
from reward_lists import recipe

from grpo_utils import chat_prompt, correctness_reward
from grpo_utils.rewards import (
    AnswerReward,
    extract_after_thinking,
    extract_boxed,
    strict_format_reward,
    think_format_reward,
)


def pattern_reward(pattern: str):
    return recipe("pattern_reward", PATTERN=regex.compile(pattern, regex.DOTALL))


TURN = "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
TURNS = "{% for m in messages %}" + TURN + "{% endfor %}"
OPENS = "{{ '<|im_start|>assistant\\n' }}"
#: Written for these tests after how the models behave; each ends a turn with the tiny tokenizer's own token.
TEMPLATES = {
    "r1 distilled": (
        "{% for m in messages %}{% if m.role == 'assistant' %}"
        "{{ '[Assistant]' + m.content.split('</think>')[-1] + '<|im_end|>' }}"
        "{% elif m.role == 'user' %}{{ '[User]' + m.content }}{% else %}{{ m.content }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '[Assistant]<think>\\n' }}{% endif %}"
    ),
    "qwen3": TURNS + "{% if add_generation_prompt %}" + OPENS
    + "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}"
    "{% endif %}{% endif %}",
    "qwen3.5": TURNS + "{% if add_generation_prompt %}" + OPENS
    + "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}"
    "{% else %}{{ '<think>\\n' }}{% endif %}{% endif %}",
    "upper case brackets": TURNS + "{% if add_generation_prompt %}" + OPENS + "[THINK]{% endif %}",
    "the course's tag": TURNS + "{% if add_generation_prompt %}" + OPENS + "<reasoning>{% endif %}",
    "start and end": TURNS + "{% if add_generation_prompt %}" + OPENS + "<start_working_out>{% endif %}",
    "a tag of one's own": TURNS + "{% if add_generation_prompt %}" + OPENS + "<draft>{% endif %}",
    "words after the tag": TURNS + "{% if add_generation_prompt %}" + OPENS + "{{ '<think>\\nOkay, ' }}{% endif %}",
    "always opened": TURNS + OPENS + "{{ '<think>\\n' }}",
    "by the system prompt": TURNS + "{% if add_generation_prompt %}" + OPENS
    + "{% if messages[0].role == 'system' and '/no_think' in messages[0].content %}"
    "{{ '<think>\\n\\n</think>\\n' }}{% else %}{{ '<think>\\n' }}{% endif %}{% endif %}",
    "not prefilled": TURNS + "{% if add_generation_prompt %}" + OPENS + "{% endif %}",
}  # fmt: skip
PREFILL = [name for name in TEMPLATES if name not in ("qwen3", "not prefilled")]


def trl_think(completions, **kwargs):
    from trl.rewards import think_format_reward

    return think_format_reward(completions, **kwargs)


def both_forms(completions, **kwargs):
    """Pays thinking that ends and is followed by something, no matter who opened it."""
    texts = [c if isinstance(c, str) else c[0]["content"] or "" for c in completions]
    halves = [text.removeprefix("<think>").partition("</think>") for text in texts]
    return [1.0 if thought.strip() and end and said.strip() else 0.0 for thought, end, said in halves]


def preflight_of(name, rewards, arguments=None, **changes):
    """What the rules of thinking say of a template, some rewards and the sound run's rows, with something changed."""
    tokenizer = load_tokenizer()
    tokenizer.chat_template = TEMPLATES.get(name)
    run = plan(arguments or {}, **{"tokenizer": tokenizer, "train": ROWS, "rewards": rewards, **changes})
    return PreflightReport(tuple(thinking.prefilled_think(run)), notes=tuple(thinking.notes(run)))


def found(report):
    """The finding, or None."""
    return next((finding for finding in report.findings if finding.code == "prefilled_think"), None)


@pytest.mark.parametrize("name", ["r1 distilled", "qwen3.5", "words after the tag", "always opened"])
def test_a_think_reward_that_is_always_0_is_an_error(name):
    report = preflight_of(name, [correctness_reward, trl_think])
    finding = found(report)
    assert finding.severity == "error" and not report.ok, str(report)
    assert "trl_think" in finding.why and "correctness_reward" not in finding.why
    assert ("'enable_thinking': False" in " ".join(finding.fixes)) == (name == "qwen3.5"), " ".join(finding.fixes)


@pytest.mark.parametrize("name", ["r1 distilled", "qwen3.5", "words after the tag", "always opened"])
def test_a_reward_that_takes_both_forms_passes(name):
    report = preflight_of(name, [correctness_reward, both_forms])
    assert found(report) is None, str(report)
    assert any("completions contain only '</think>'" in note for note in report.notes)


def test_the_librarys_own_think_reward_passes():
    for name in ("r1 distilled", "qwen3.5", "qwen3", "not prefilled"):
        report = preflight_of(name, [correctness_reward, think_format_reward])
        assert found(report) is None, str(report)


@pytest.mark.parametrize("name", PREFILL)
def test_an_opened_tag_without_rewards_is_a_warning(name):
    rows = [
        {**row, "prompt": chat_prompt("What is 1 + 1?", "Write <draft>a draft</draft>, then answer.")} for row in ROWS
    ]
    report = preflight_of(name, None, train=rows)
    assert found(report).severity == "warning" and report.ok, str(report)


@pytest.mark.parametrize("name", ["qwen3", "not prefilled"])
@pytest.mark.parametrize("reward", [trl_think, both_forms, strict_format_reward])
def test_a_template_that_opens_no_tag_passes(name, reward):
    report = preflight_of(name, [reward])
    assert found(report) is None and not [note for note in report.notes if "prompt ends with" in note], str(report)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("upper case brackets", r"\[THINK\].+?\[/THINK\].+"),
        ("the course's tag", r"<reasoning>.+?</reasoning>\s*<answer>.+?</answer>"),
        ("start and end", r"<start_working_out>.+?<end_working_out>\s*<SOLUTION>.+?</SOLUTION>"),
        ("a tag of one's own", r"<draft>.+?</draft>.+"),
        ("r1 distilled", r"<think>\n.+?\n</think>\n<answer>\n.+?\n</answer>"),
        ("r1 distilled", r"<think>\n.+?\n</think>\n\n.+"),
    ],
)
def test_any_reasoning_tag_counts_not_only_think(name, pattern):
    rows = [
        {**row, "prompt": chat_prompt("What is 1 + 1?", "Write <draft>a draft</draft>, then answer.")} for row in ROWS
    ]
    given = {"train": rows}
    assert found(preflight_of(name, [pattern_reward(pattern)], **given)).severity == "error"
    opening, rest = pattern.split("\n" if "\n" in pattern else ".+?", 1)
    optional = pattern_reward(f"({opening}\\s*)?.*?{rest}" if "\n" not in pattern else f"({opening}\n)?{rest}")
    assert found(preflight_of(name, [optional], **given)) is None


def test_the_asked_form_counts_where_it_is_given():
    reward = pattern_reward("<think>.+</think>\\s*<final>.+</final>")
    tags = ("<think>", "</think>", "<final>", "</final>")
    assert found(preflight_of("r1 distilled", [reward], tags=tags)).severity == "error"
    assert found(preflight_of("r1 distilled", [reward])).severity == "warning"


def test_two_rewards_of_one_name_are_both_tried():
    strict, both = pattern_reward("<think>.+</think>.+"), pattern_reward("(<think>)?.+</think>.+")
    for rewards in ([strict, both], [both, strict]):
        assert found(preflight_of("r1 distilled", rewards)).severity == "error"


def test_a_reward_that_is_only_watched_is_no_error():
    rewards, arguments = [correctness_reward, trl_think], {"reward_weights": [1.0, 0.0]}
    report = preflight_of("r1 distilled", rewards, arguments=arguments)
    assert found(report) is None, str(report)


def minus_one_without(completions, **kwargs):
    """0 for the form and -1 for everything else: a penalty."""
    return [score - 1.0 for score in trl_think(completions)]


def halves(completions, **kwargs):
    return [0.5 * (("<think>" in c[0]["content"]) + ("</think>" in c[0]["content"])) for c in completions]


def none_without(completions, **kwargs):
    return [score or None for score in trl_think(completions)]


@pytest.mark.parametrize(
    ("reward", "severity"), [(minus_one_without, "error"), (none_without, "error"), (halves, "warning")]
)
def test_what_a_reward_pays_is_compared_with_what_it_pays_for_nothing(reward, severity):
    assert found(preflight_of("r1 distilled", [reward])).severity == severity


@pytest.mark.parametrize("reward", [strict_format_reward, pattern_reward("[0-9]+")])
def test_another_form_after_the_thinking_is_a_warning(reward):
    assert found(preflight_of("qwen3.5", [correctness_reward, reward])).severity == "warning"


@pytest.mark.parametrize("reward", [correctness_reward, AnswerReward(extract=extract_boxed)])
def test_a_reward_that_reads_the_answer_alone_passes(reward):
    for name in ("r1 distilled", "qwen3.5"):
        assert found(preflight_of(name, [reward])) is None


# The models' own templates, of which the pinned TRL ships copies

#: What each writes of the thinking: by itself, with ``enable_thinking`` true, and with it false.
SHIPPED = {
    "qwen2_5": (None, None, None),
    "qwen3_instruct_2507": (None, None, None),
    "gemma3": (None, None, None),
    "qwen3": (None, None, "closed"),
    "qwen3_5_nothink": ("closed", "open", "closed"),
    "qwen3_5_think": ("open", "open", "closed"),
    "qwen3_8": ("open", "open", "closed"),
    "deepseek_r1_distill": ("open", "open", "open"),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_what_a_models_own_template_writes_of_the_thinking_is_found(name, monkeypatch):
    template = Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja"
    monkeypatch.setitem(TEMPLATES, name, template.read_text(encoding="utf-8"))
    switches = ({}, {"enable_thinking": True}, {"enable_thinking": False})
    reports = [preflight_of(name, [trl_think], arguments={"chat_template_kwargs": each}) for each in switches]
    said = [finding and finding.what for finding in map(found, reports)]
    assert tuple(what and ("closed" if "and '</think>'" in what else "open") for what in said) == SHIPPED[name]


# Thinking that the prompt has closed already


@pytest.mark.parametrize("name", ["qwen3", "qwen3.5"])
@pytest.mark.parametrize("reward", [trl_think, both_forms, AnswerReward(extract=extract_after_thinking)])
def test_thinking_that_is_turned_off_and_asked_for_is_an_error(name, reward):
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    finding = found(preflight_of(name, [correctness_reward, reward], arguments=off))
    assert finding.severity == "error"
    assert "enable_thinking=True in chat_template_kwargs" in " ".join(finding.fixes)


@pytest.mark.parametrize("name", ["qwen3", "qwen3.5"])
@pytest.mark.parametrize("rewards", [[correctness_reward], [strict_format_reward], [pattern_reward("[0-9]+")], None])
def test_thinking_that_is_turned_off_and_not_asked_for_passes(name, rewards):
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    assert found(preflight_of(name, rewards, arguments=off)) is None


def test_arguments_of_the_template_may_be_json():
    off = {"chat_template_kwargs": '{"enable_thinking": false}'}
    assert "and '</think>'" in found(preflight_of("qwen3.5", [trl_think], arguments=off)).what


# Thoughts and the completion limit


def cut_off(name, **arguments):
    """What preflight says of the completion limit, with a template of TRL's."""
    tokenizer = load_tokenizer()
    tokenizer.chat_template = TEMPLATES[name]
    return thinking.short_thoughts(plan(arguments, tokenizer=tokenizer, train=ROWS))


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("switch", [None, True, False])
def test_a_limit_below_a_thought_is_a_warning_where_thinking_is_on(name, switch, monkeypatch):
    template = Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja"
    monkeypatch.setitem(TEMPLATES, name, template.read_text(encoding="utf-8"))
    switched = {} if switch is None else {"chat_template_kwargs": {"enable_thinking": switch}}
    default, _, off = SHIPPED[name]
    on = default == "open" or (default is None and off == "closed") if switch is None else bool(off) and switch
    found = cut_off(name, max_completion_length=256, **switched)
    assert [one.severity for one in found] == ["warning"] * (on or name == "deepseek_r1_distill"), name
    assert not cut_off(name, max_completion_length=1024, **switched)
    if found:
        assert ("enable_thinking" in found[0].fixes[0]) == (name != "deepseek_r1_distill")


# Prompts


TALK = chat_prompt("And 2 + 2?", None, [("What is 1 + 1?", "<think>easy"), ("And 3 + 3?", "<think>so</think>6")])


@pytest.mark.parametrize(
    ("name", "prompt", "is_found"),
    [
        ("not prefilled", chat_prompt("What is 1 + 1? Write <think> first.", "Start with <think>."), False),
        ("not prefilled", chat_prompt("<think>", "First <think> aloud, then </think> and answer."), False),
        ("not prefilled", chat_prompt("<think>", "<think>"), False),
        ("not prefilled", [*chat_prompt("What is 1 + 1?"), {"role": "assistant", "content": "<think>"}], False),
        ("not prefilled", TALK, False),
        ("r1 distilled", TALK, True),
        ("qwen3.5", TALK, True),
    ],
)
def test_only_what_the_template_opens_counts(name, prompt, is_found):
    report = preflight_of(name, [trl_think], train=[{**ROWS[0], "prompt": prompt}])
    assert (found(report) is not None) == is_found, str(report)


def test_some_prompts_of_a_dataset_may_turn_thinking_off():
    rows = [
        {**row, "prompt": chat_prompt("1 + 1?", "Be short. /no_think" if n % 2 else "Be short.")}
        for n, row in enumerate(ROWS)
    ]
    finding = found(preflight_of("by the system prompt", [trl_think], train=rows[:8]))
    assert finding.severity == "error" and "4 of the 8 prompts checked" in finding.what, finding.what


def text_rewards(completions, **kwargs):
    return [1.0 if text.startswith("<think>") and "</think>" in text else 0.0 for text in completions]


def asking(text):
    """The rows with prompts that are texts, from the question."""
    return [{**row, "prompt": text.format(row["prompt"][-1]["content"])} for row in ROWS]


@pytest.mark.parametrize("end", ["<think>", "<think>\n", "Assistant: Let me solve this step by step.\n<think>"])
def test_text_prompts_that_end_with_the_tag_are_found(end):
    rows = asking("{}\n" + end)
    finding = found(preflight_of(None, [text_rewards], train=rows))
    assert finding.severity == "error" and "from the end of the prompts" in " ".join(finding.fixes)
    assert found(preflight_of(None, [both_forms], train=rows)) is None


@pytest.mark.parametrize("text", ["Think in <think> first. {}\nAnswer:", "Question: {}\nAnswer:"])
def test_text_prompts_that_end_otherwise_pass(text):
    assert found(preflight_of(None, [text_rewards], train=asking(text))) is None


def test_text_prompts_that_are_rendered_already_are_read_too():
    rows = asking("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\nOkay, ")
    assert found(preflight_of("words after the tag", [text_rewards], train=rows)).severity == "error"


def test_a_dataset_and_no_rows_are_looked_at_too():
    report = preflight_of("qwen3.5", [trl_think], train=Dataset.from_list(ROWS))
    assert found(report).severity == "error"
    report = preflight_of("qwen3.5", [trl_think], train=None)
    assert found(report).severity == "error", str(report)


def test_rewards_that_are_not_tried_are_a_warning_that_says_so():
    finding = found(preflight_of("qwen3.5", [trl_think], try_rewards=False))
    assert finding.severity == "warning" and "could not be checked for your rewards (try_rewards=False)" in finding.why


@pytest.mark.parametrize(
    ("rewards", "lab", "severity", "said"),
    [
        ([trl_think], True, "error", "trl_think scores only completions with both tags"),
        ([trl_think], False, "warning", "try_rewards=False"),
        (["some/reward-model"], True, "warning", "none of them is a function"),
    ],
)
def test_a_preflight_checks_it_with_the_rewards_that_can_be_tried(rewards, lab, severity, said):
    tokenizer = load_tokenizer()
    tokenizer.chat_template = TEMPLATES["qwen3.5"]
    finding = found(check(tokenizer, rewards=rewards, try_rewards=lab))
    assert finding.severity == severity and said in finding.why
