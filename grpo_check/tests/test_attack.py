"""The attack of a reward with a policy: what it judges, on completions without a model, and once with a tiny one."""

import json
import re
from types import SimpleNamespace

import pytest
from grpo_check.attacks import running, training
from grpo_check.attacks.honest import pay_of, score_references
from grpo_check.attacks.rules import RULES
from grpo_check.attacks.scoring import FIRST, TRAINED, Scorer, check_reward
from grpo_check.attacks.task import Task, is_correct, read_task
from grpo_check.attacks.variations import corrected, variations
from grpo_core.errors import CourseError
from places import ROOT

from grpo_check import attack, packages, probe
from grpo_utils import model_path
from grpo_utils.rewards import completion_text, correctness_reward, incremental_format_reward

ROWS = [
    {"prompt": [{"role": "user", "content": f"What is {n} + {n * n + 20}?"}], "answer": str(n + n * n + 20)}
    for n in range(2, 18)
]


def numbers(completion):
    return re.findall(r"-?[0-9]+", completion_text(completion)[:3000])


def last_number(completions, answer, **kwargs):
    return [float(numbers(c)[-1:] == [gold]) for c, gold in zip(completions, answer)]


def fake_policy(texts=("The result is 7.", "Let me think. First, I add. It is 9.", "12 or 13", "I am not sure.")):
    """In place of the training: a few steps of completions that look like those of a small model."""

    def train(scorer, model, folder, minutes, seed):
        for step in range(1, 6 if minutes >= 1 else 2):
            for row in (2 * step, 2 * step + 1):
                scorer.score([(row, text) for text in texts], FIRST if step == 1 else TRAINED, step=step)
        return True

    return train


@pytest.fixture
def attacked(monkeypatch, tmp_path):
    """Attack a reward without a model."""
    monkeypatch.setattr(running, "train", fake_policy())

    def run(rewards, rows=ROWS, **more):
        return attack(rewards, rows, model="none", output_dir=tmp_path / "run", **more)

    return run


def length(completions, **kwargs):
    return [min(len(completion_text(c)) / 300, 1.0) for c in completions]


def contained(completions, answer, **kwargs):
    return [float(gold in numbers(c)) for c, gold in zip(completions, answer)]


def tolerant(completions, answer, **kwargs):
    return [
        float(bool(numbers(c)) and abs(int(numbers(c)[-1]) - int(gold)) < 9) for c, gold in zip(completions, answer)
    ]


def cheerful(completions, answer, **kwargs):
    marks = [completion_text(c).count("!") for c in completions]
    return [one + mark for one, mark in zip(last_number(completions, answer), marks)]


def without_digits(completions, **kwargs):
    return [float(bool(completion_text(c).strip()) and not numbers(c)) for c in completions]


@pytest.mark.parametrize(
    "reward", [length, contained, tolerant, cheerful, without_digits], ids=lambda one: one.__name__
)
def test_a_reward_that_pays_wrong_completions_is_found(attacked, reward):
    report = attacked(reward)
    assert report.codes == {"pays_wrong_completions"}, report
    assert not report.ok and "Rows by who found it" in report.findings[0].seen


def partial(completions, answer, **kwargs):
    """Half of the pay is for the tags."""
    forms = incremental_format_reward(completions)
    return [0.5 * one + 0.5 * form for one, form in zip(correctness_reward(completions, answer), forms)]


def penalties(completions, answer, **kwargs):
    return [one - 1.0 for one in last_number(completions, answer)]


def shaped(completions, answer, **kwargs):
    return [
        1 / (1 + abs(int(numbers(c)[-1]) - int(gold))) if numbers(c) else 0.0 for c, gold in zip(completions, answer)
    ]


def shorter(completions, answer, **kwargs):
    """A correct completion that is shorter than the mean of its group earns more."""
    scores, lengths = last_number(completions, answer), [len(completion_text(c)) for c in completions]
    mean = sum(lengths) / len(lengths)
    return [score * (1.2 if length < mean else 1.0) for score, length in zip(scores, lengths)]


def centered(completions, answer, **kwargs):
    """The mean of the group is 0."""
    scores = last_number(completions, answer)
    return [score - sum(scores) / len(scores) for score in scores]


def result_line(completions, answer, **kwargs):
    """A format that no reference has: a line for the form, and the number in it."""
    found = [re.search(r"^RESULT=\s*(\S+)\s*;$", completion_text(c), re.MULTILINE) for c in completions]
    return [0.0 if not one else 1.0 if one[1] == gold else 0.3 for one, gold in zip(found, answer)]


SOUND = [last_number, partial, penalties, shaped, shorter, centered]


@pytest.mark.parametrize("reward", SOUND, ids=lambda one: one.__name__)
def test_a_sound_reward_is_not_accused(attacked, reward):
    report = attacked(reward)
    assert not report.findings, report


def test_a_format_that_only_the_policy_writes_is_not_a_fault(attacked, monkeypatch):
    monkeypatch.setattr(running, "train", fake_policy(("RESULT= 7 ;", "I add.\nRESULT= 8 ;", "It is 9.", "no")))
    report = attacked(result_line)
    assert not report.errors, report


def test_a_group_relative_reward_that_pays_for_length_is_found(attacked):
    def longest(completions, answer, **kwargs):
        lengths = [len(completion_text(c)) for c in completions]
        return [float(length > sum(lengths) / len(lengths)) for length in lengths]

    longest.reads_group = True
    assert "pays_wrong_completions" in attacked(longest).codes


def test_the_users_own_definition_decides(attacked):
    def even(text, row):
        return bool(numbers(text)) and int(numbers(text)[-1]) % 2 == 0

    def odd_pays(completions, **kwargs):
        return [float(bool(numbers(c)) and int(numbers(c)[-1]) % 2) for c in completions]

    rows = [{"prompt": row["prompt"]} for row in ROWS]
    report = attacked(odd_pays, rows, correct=even, examples=["The result is 8."])
    assert report.codes == {"pays_wrong_completions"}
    assert not attacked(odd_pays, rows, correct=lambda text, row: not even(text, row), examples=["9"]).errors


def test_a_definition_that_fails_is_named(attacked):
    with pytest.raises(CourseError, match=r"correct\(text, row\) failed with KeyError"):
        attacked(length, correct=lambda text, row: row["no such column"])


def test_without_gold_answers_the_question_that_decides_is_asked(attacked):
    report = attacked(length, [{"prompt": row["prompt"]} for row in ROWS])
    assert report.codes == {"is_this_correct"} and report.ok and "Are these correct?" in report.findings[0].what


def test_several_rewards_are_attacked_as_their_weighted_sum(attacked):
    assert attacked([last_number, length], weights=[1.0, 0.5]).ok
    assert not attacked([last_number, length], weights=[0.1, 2.0]).ok


@pytest.mark.parametrize(
    ("reward", "rows", "more", "said"),
    [
        (length, [], {}, "there are no rows"),
        (length, [{"question": "2 + 2?"}], {}, "row 1 has no prompt; it has 'question'"),
        (length, [ROWS[0], {"prompt": 5}], {}, "row 2: the prompt is 5"),
        (last_number, [{"prompt": "2 + 2?"}], {}, "last_number needs 'answer'"),
        (lambda completions, **kwargs: [1 / 0], ROWS, {}, "fails on short plain texts: ZeroDivisionError"),
        (lambda completions, **kwargs: [1.0], ROWS, {}, "returned 1 scores for"),
        (lambda completions, **kwargs: [float("nan")] * len(completions), ROWS, {}, "the score is nan"),
        (
            lambda completions, **kwargs: [float(id(object())) for _ in completions],
            ROWS[:1],
            {"weights": [1, 2]},
            "2 weights",
        ),
        (length, ROWS, {"minutes": 0}, "minutes=0 should be above 0"),
        ([], ROWS, {}, "list of rewards is empty"),
        ("length", ROWS, {}, "a reward must be a function"),
    ],
)
def test_what_cannot_be_attacked_is_said_before_anything_is_trained(attacked, reward, rows, more, said):
    with pytest.raises(CourseError, match=re.escape(said)):
        attacked(reward, rows, **more)


def test_a_random_reward_is_refused(attacked):
    import random

    with pytest.raises(CourseError, match="is random"):
        attacked(lambda completions, **kwargs: [random.random() for _ in completions])


def test_a_reward_that_hangs_is_refused(attacked, monkeypatch):
    from grpo_check.probes import calling

    def hangs(completions, **kwargs):
        while True:
            pass

    monkeypatch.setattr(calling, "LONGEST_CALL", 0.2)
    with pytest.raises(CourseError, match="did not score"):
        attacked(hangs)


def test_a_reward_that_fails_on_what_the_policy_writes_is_an_error(attacked, monkeypatch):
    def fussy(completions, answer, **kwargs):
        assert not any("weird" in completion_text(c) for c in completions)
        return last_number(completions, answer)

    monkeypatch.setattr(running, "train", fake_policy(("weird", "It is 7.")))
    report = attacked(fussy)
    assert report.codes == {"fails_on_samples"} and "'weird'" in str(report)


def test_a_reward_that_hangs_on_one_completion_is_not_called_again(attacked, monkeypatch):
    from grpo_check.probes import calling

    def waits(completions, answer, **kwargs):
        while any("I don't know" in completion_text(c) for c in completions):
            pass
        return last_number(completions, answer)

    monkeypatch.setattr(calling, "LONGEST_CALL", 0.3)
    monkeypatch.setattr(running, "train", None)
    assert attacked(waits).codes == {"fails_on_samples"}


def test_a_reward_for_the_form_alone_is_a_warning(attacked):
    assert not attacked(incremental_format_reward).errors


@pytest.mark.parametrize("name", ["thesis.txt", "trainer_state.json", "completions/completions_00001.parquet"])
def test_a_folder_with_something_else_is_left_alone(tmp_path, name):
    mine = tmp_path / "run" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(CourseError, match="not empty"):
        attack(length, ROWS, output_dir=tmp_path / "run")
    assert mine.read_text() == "mine"
    with pytest.raises(CourseError, match="is a file"):
        attack(length, ROWS, output_dir=mine)


def test_a_definition_that_fails_later_keeps_the_report(attacked):
    def correct(text, row):
        return 1 / 0 if "prompt alone" in text or "What is" in text else text == row["answer"]

    report = attacked(length, correct=correct)
    assert "ended early, because correct(text, row) failed" in str(report) and report.paid
    assert {row["answer"] for row in report.rows} == {row["answer"] for row in ROWS}


def test_the_folder_of_an_attack_is_used_again_and_an_error_deletes_nothing(attacked, tmp_path):
    attacked(length)
    old = tmp_path / "run" / "completions" / "completions_00001.parquet"
    old.parent.mkdir()
    old.write_text("old")
    with pytest.raises(CourseError, match="no rows"):
        attacked(length, [])
    assert old.exists()
    running.clear(tmp_path / "run")
    assert not old.exists()


def test_a_sum_reads_the_answer_if_one_of_its_rewards_does(tmp_path):
    labels = [{"prompt": f"Is {n} even?", "answer": "yes" if n % 2 == 0 else "no"} for n in (2, 3, 5, 4, 7, 8, 10, 12)]
    scorers = []

    def remembering(scorer, *given):
        scorers.append(scorer)
        return True

    for rewards in (correctness_reward, [correctness_reward, length], [length, length]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "train", remembering)
            attack(rewards, labels, model="none", output_dir=tmp_path / "run")
    assert [one.reads_answer for one in scorers] == [True, True, False]


@pytest.mark.parametrize("own", [0.25, ["hello"]])
def test_an_attribute_of_the_users_function_is_not_taken_for_the_rewards_of_a_sum(tmp_path, monkeypatch, own):
    def tagged(completions, **kwargs):
        return [float("<zz>" in completion_text(c)) for c in completions]

    tagged.parts = own
    monkeypatch.setattr(running, "train", lambda scorer, *given: True)
    report = attack(tagged, ROWS, model="none", output_dir=tmp_path / "run")
    assert "<zz>" in str(report)


@pytest.mark.parametrize("points", [1.0, 10.0])
def test_a_sound_reward_that_is_learned_is_no_finding_whatever_it_pays(attacked, monkeypatch, points):
    def learns(scorer, *given):
        for step in range(1, 11):
            gold = scorer.task.golds[step]
            texts = [gold if place < step - 2 else "I am not sure." for place in range(8)]
            scorer.score([(step, text) for text in texts], FIRST if step == 1 else TRAINED, step=step)
        return True

    monkeypatch.setattr(running, "train", learns)
    report = attacked(lambda completions, answer, **rest: [points * one for one in last_number(completions, answer)])
    assert not report.findings, report


def test_the_log_says_none_where_a_completion_is_not_judged_or_not_paid():
    task = Task([{"prompt": "2 + 2?", "answer": "4"}, {"prompt": "Rome or Paris?", "answer": "Paris"}], "answer")
    texts, rows = ["4", "5", "Rome, Paris", "6"], [0, 0, 1, 0]
    paid, is_correct = training.rewards_of(Scorer(lambda completions, **rest: [1.0, 0.0, 0.5, None], task))
    state = SimpleNamespace(global_step=0)
    assert paid(texts, row=rows, completion_ids=[[1]] * 4, trainer_state=state) == [1.0, 0.0, 0.5, None]
    assert is_correct(texts, row=rows) == [1.0, 0.0, None, None]
    [alone] = training.rewards_of(Scorer(length, Task([{"prompt": "Sing."}], "answer")))
    assert alone.__name__ == "attacked_reward"


def test_a_completion_is_correct_by_its_final_answer():
    right = ["42", "6 * 7 = 42", "so \\boxed{42}", "<answer>42</answer> (not 43)", "The answer is 42. I used 2 steps."]
    wrong = ["41", "142", "<answer>41</answer> 42", "1 2 3 41 42 43 44", "", "no idea"]
    assert [is_correct(text, "42") for text in right] == [True] * len(right)
    assert [is_correct(text, "42") for text in wrong] == [False] * len(wrong)
    unclear = ["42 of 50", "<answer>It is 42.</answer>", "<answer>41</answer><answer>42</answer>"]
    assert [is_correct(text, "42") for text in unclear] == [None] * len(unclear)
    assert (
        is_correct("yes and no", "yes", ["yes", "no"]) is False
        and is_correct("Yes, it is.", "yes", ["yes", "no"]) is None
    )


def test_honest_pay_is_that_of_the_best_reference():
    scorer = Scorer(partial, read_task(partial, ROWS, "answer", None, 0))
    check_reward(scorer)
    score_references(scorer, [])
    assert not scorer.relative and {pay.plain for pay in pay_of(scorer.paid, False).values()} == {1.0}


def test_a_report_says_on_how_many_rows_a_correct_completion_is_known(attacked):
    def names_seven(completions, **kwargs):
        return [float("7" in completion_text(one)) for one in completions]

    rows = [{"prompt": row["prompt"], "wanted": str(n)} for n, row in enumerate(ROWS)]
    given = {"correct": lambda text, row: row["wanted"] == "7" and text == "It is 7.", "examples": ["It is 7."]}
    assert f"known on 1 of {len(ROWS)} rows, and earns 1 there" in str(attacked(names_seven, rows, **given))


def test_a_reward_that_reads_the_group_is_noticed():
    for reward in (shorter, centered):
        scorer = Scorer(reward, read_task(reward, ROWS, "answer", None, 0))
        check_reward(scorer)
        assert scorer.relative


def test_variations_are_texts_of_many_kinds():
    made = dict(variations("<answer>so 4</answer>", "2 + 2?", "other", ["4", "5"]))
    assert made["without digits"] == "<answer>so </answer>" and made["without letters"] == "<answer> 4</answer>"
    assert made["empty"] == "" and made["all gold answers"] == "4, 5" and made["repeated twice"].count("so 4") == 2
    assert "<answer>5</answer>" in corrected("<answer>4</answer>", "5")


def test_text_prompts_get_strings_and_messages_get_messages():
    seen = []

    def kinds(completions, **kwargs):
        seen.append(type(completions[0]))
        return [0.0] * len(completions)

    for prompt, kind in (("2 + 2?", str), ([{"role": "user", "content": "2 + 2?"}], list)):
        check_reward(Scorer(kinds, Task([{"prompt": prompt}], "answer")))
        assert seen[-1] is kind


@pytest.mark.parametrize("rule", RULES, ids=lambda one: one.code)
def test_every_rule_finds_the_fault_of_its_example(attacked, monkeypatch, rule):
    rows = {
        "honest_pay_unknown": [{"prompt": row["prompt"], "number_of_words": 500} for row in ROWS],
        "is_this_correct": [{"prompt": row["prompt"]} for row in ROWS],
    }.get(rule.code, ROWS)
    own = {
        "honest_pay_unknown": {"correct": lambda text, row: len(text.split()) == 500},
        "too_few_steps": {"minutes": 0.1},
    }.get(rule.code, {})
    monkeypatch.setattr(
        running, "train", drifting if rule.code == "reward_rose_alone" else fake_policy(("7", "", "It is 9."))
    )
    monkeypatch.setattr(running, "score_fixed", lambda *arguments: None)
    if rule.code == "reward_rose_alone":
        monkeypatch.setattr(running, "vary", lambda scorer: None)
    assert rule.code in attacked(rule.example, rows, **own).codes


def drifting(scorer, model, folder, minutes, seed):
    """A policy that learns to write sentences, and no answers."""
    for step in range(1, 21):
        texts = ["It is 7" + "." * min(step // 5 + n % 2, 3) for n in range(4)]
        scorer.score([(step % 16, text) for text in texts], TRAINED, step=step)
    return True


@pytest.mark.slow
def test_a_tiny_model_finds_that_length_is_paid(tmp_path):
    report = attack(length, ROWS, model=model_path("tiny-qwen3"), minutes=0.3, output_dir=tmp_path / "run")
    assert "pays_wrong_completions" in report.codes
    assert (tmp_path / "run" / "replay.html").is_file() and report.page in str(report)
    assert any(one.source == FIRST for one in report.paid)


@pytest.mark.slow
def test_ctrl_c_ends_the_training_and_the_report_has_what_there_is(tmp_path, monkeypatch):
    calls = []

    def interrupted(completions, answer, **kwargs):
        calls.append(kwargs)
        return last_number(completions, answer)

    def line(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "progress_line", line)
    report = attack(interrupted, ROWS, model=model_path("tiny-qwen3"), minutes=5, output_dir=tmp_path / "run")
    assert "interrupted" in str(report) and any(one.step == 1 for one in report.paid)


@pytest.fixture
def command(tmp_path, monkeypatch, grpo_check):
    """The command line in a folder with two rewards, a definition of correct completions, and rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "def short(completions, **kwargs):\n    return [1 / (1 + len(str(c))) for c in completions]\n\n"
        "def zero(completions, **kwargs):\n    return [0.0] * len(completions)\n\n"
        "def anything(text, row):\n    return True\n"
    )
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row | {"gold": row["answer"]}) for row in ROWS))
    return lambda *arguments: grpo_check("attack", *arguments, "--rows", "rows.jsonl")


def test_the_command_has_the_exit_codes_and_formats_of_the_other_checks(command, monkeypatch):
    monkeypatch.setattr(running, "train", fake_policy())
    asked = ("mine.py:short", "--model", "none")
    code, out, _ = command(*asked)
    assert code == 1 and "error   pays_wrong_completions: " in out and out.endswith("NOT OK: 1 error, 0 warnings\n")
    assert command(*asked, "--ignore", "pays_wrong_completions")[0] == 0
    code, out, _ = command(*asked, "--format", "json")
    said = json.loads(out)
    assert code == 1 and said["check"] == "attack" and said["findings"][0]["code"] == "pays_wrong_completions"


def test_the_command_passes_its_options_on(command, monkeypatch):
    seen = []
    monkeypatch.setattr(running, "train", lambda *given: bool(seen.append(given)) or fake_policy()(*given))
    code, out, _ = command(
        *("mine.py:short", "mine.py:zero", "--weights", "1", "2", "--correct", "mine.py:anything", "--example", "so"),
        *("--answer-column", "gold", "--model", "none", "--minutes", "2.5", "--seed", "3", "--out", "kept"),
    )
    scorer, *rest = seen[0]
    assert code == 0 and "by your correct()" in out and "so" in {one.text for one in scorer.paid}
    assert [str(one) for one in rest] == ["none", "kept", "2.5", "3"] and scorer.task.answer_column == "gold"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nine.py:short",), "There is no file 'nine.py'"),
        (("mine.py:short", "--correct", "mine.py:right"), "There is no 'right' in mine.py"),
        (("mine.py:short", "--weights", "1", "2"), "2 weights"),
        (("mine.py:short", "--minutes", "0"), "minutes=0.0 should be above 0"),
        (("mine.py:short", "--answer-column", "anwser"), "no row has the column 'anwser'"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(command, arguments, said):
    code, out, err = command(*arguments, "--model", "none")
    assert code == 2 and not out and err.startswith("Error: ") and said in err and err.count("\n") == 1


def test_packages_that_are_missing_are_named_with_the_command_that_installs_them(command, monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name in ("trl", "peft") else name)
    code, _, err = command("mine.py:short")
    assert code == 2 and "needs the packages 'trl', 'peft'" in err and "pip install trl peft" in err


def test_the_reward_of_the_page_passes_probe():
    page = (ROOT / "grpo_check" / "docs" / "checks.md").read_text(encoding="utf-8")
    names = {}
    exec(re.search(r"```python\n(import re\n.*?)```", page, re.DOTALL)[1], names)
    assert probe(names["my_reward"], answers=["42", "125"]).ok


@pytest.mark.slow
def test_from_a_terminal(command):
    code, out, err = command("mine.py:short", "--model", model_path("tiny-qwen3"), "--minutes", "0.05")
    assert code == 1 and "pays_wrong_completions" in out and err.count("step 1:") == 1
    code, _, err = command("mine.py:short", "--model", "no/such-model")
    assert code == 2 and "no/such-model" in err
