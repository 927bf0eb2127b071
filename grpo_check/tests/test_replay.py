"""`grpo-check replay`: the folder of a run becomes one page, and folders that are no run one sentence."""

import json
import os
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

import browser
import pandas
import pytest
import replay_runs
from browser import needs_browser
from bs4 import BeautifulSoup
from course import full_disk
from grpo_check.health.replaying import leave_page
from grpo_check.health.samples import keep
from grpo_check.replay import page as replay_page
from grpo_check.replay.page import runs_of, write_replay
from grpo_check.replay.read import MOST_STEPS, read_run
from grpo_check.replay.summary import most_paid, weights_of
from grpo_core.errors import CourseError

#: Three backgrounds, then what is written on them.
COLORS = "paper card text ink quiet reward correctness part length tied error warning note"
SAMPLED = {"ended": True, "in_form": True, "right": True, "answers": True}
EVIL = "</script><script>document.title='stolen'</script><img src=x onerror=\"document.title='stolen'\">"


def page_of(recording):
    """The page of one recording."""
    return replay_page.page_of([replay_page.run_of(recording)], recording.name)


def written(folder, file=None):
    """The file with the page of a folder."""
    file = file or folder / "replay.html"
    write_replay(read_run(folder), file)
    return file


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that learns to cheat."""
    return replay_runs.write_run(tmp_path_factory.mktemp("runs") / "cheat")


@pytest.fixture(scope="module")
def data(run):
    """The run as its page has it."""
    return runs_of(page_of(read_run(run)))[0]


def test_the_command_writes_a_page_next_to_the_run_and_replaces_only_its_own(run, grpo_check, tmp_path):
    code, out, err = grpo_check("replay", run)
    assert code == 0 and not err and str(run / "replay.html") in out
    assert grpo_check("replay", run)[0] == 0
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    code, _, err = grpo_check("replay", run, "--output", mine)
    assert code == 2 and "is not a replay" in err and mine.read_text() == "<p>mine</p>"
    assert grpo_check("replay", run, "--output", tmp_path / "no" / "such" / "folder.html")[0] == 2


def test_a_group_is_sorted_by_advantage_and_has_what_was_logged(run, data):
    table = pandas.read_parquet(run / "completions" / "completions_00003.parquet")
    step = data["steps"][2]
    assert [group["tied"] for group in step["groups"]] == [False] * 4
    for group, (prompt, rows) in zip(step["groups"], table.groupby("prompt", sort=False)):
        assert data["texts"][group["prompt"]] == prompt
        rows = rows.sort_values("advantage", ascending=False)
        assert [data["texts"][row[0]] for row in group["rows"]] == list(rows["completion"])
        assert [row[2] for row in group["rows"]] == pytest.approx(list(rows["advantage"]), abs=1e-3)
        assert [row[4][0] for row in group["rows"]] == pytest.approx(list(rows["answer_length"]), abs=1e-3)


def test_the_weights_come_from_the_log_where_it_shows_them(run, tmp_path):
    weights, note = weights_of(read_run(run))
    assert weights == (1.0, 0.0) and "correctness_reward 0" in note
    replay_runs.write_step(tmp_path, replay_runs.table_at(1, 30))
    assert weights_of(read_run(tmp_path))[0] == (1.0, 1.0)


@pytest.mark.parametrize("file", ["report.json", "finished.json"])
def test_the_weights_come_from_the_report_of_the_run_if_it_has_one(tmp_path, file):
    """A template's report has them, and a short run has too few steps to work them out."""
    replay_runs.write_step(tmp_path, replay_runs.table_at(1, 30))
    report = {"rewards": {"correctness_reward": 2.0, "answer_length": 0.5}}
    (tmp_path / file).write_text(json.dumps(report))
    assert weights_of(read_run(tmp_path)) == ((0.5, 2.0), "")


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"rewards": [1]}', '{"rewards": {"answer_length": 2}}', '{"rewards": {"answer_length": "a"}}']
)
def test_a_report_without_the_weights_of_all_rewards_is_not_used(tmp_path, text):
    replay_runs.write_step(tmp_path, replay_runs.table_at(1, 30))
    (tmp_path / "report.json").write_text(text)
    assert weights_of(read_run(tmp_path))[0] == (1.0, 1.0)


def test_a_reward_that_scores_only_some_completions_keeps_its_weight(tmp_path):
    tables = [replay_runs.table_at(step, 9) for step in range(1, 9)]
    for table in tables:
        table["sometimes"] = [None, 1.0] * 8
        replay_runs.write_step(tmp_path, table)
    weighted = [table["answer_length"].mean() + 0.1 * table["sometimes"].fillna(0).mean() for table in tables]
    entries = [
        replay_runs.entry_of(table) | {"reward": total, "rewards/sometimes/mean": 1.0}
        for table, total in zip(tables, weighted)
    ]
    replay_runs.write_log(tmp_path, entries)
    assert weights_of(read_run(tmp_path))[0] == (1.0, 0.0, 0.1)


@pytest.mark.parametrize(("weight", "known"), [(1.0, ["f"]), (2.0, ["f", "g"])])
def test_completions_that_no_function_scored_do_not_change_the_weights(tmp_path, weight, known):
    chance, entries = random.Random(0), []
    for step in range(1, 9):
        scores = {name: [None if i % 4 == 0 else chance.random() for i in range(16)] for name in known}
        table = pandas.DataFrame(dict(step=step, prompt="p", completion=list("abcdefghijklmnop")) | scores)
        replay_runs.write_step(tmp_path, table)
        total = weight * table["f"] + 0.5 * table["g"] if "g" in known else weight * table["f"]
        entries.append({"step": step, "reward": total.mean(), **{f"rewards/{n}/mean": table[n].mean() for n in known}})
    replay_runs.write_log(tmp_path, entries)
    assert weights_of(read_run(tmp_path))[0] == (weight, 0.5)[: len(known)]


def test_one_damaged_log_entry_does_not_hide_the_weights(run, tmp_path):
    tables = [replay_runs.table_at(step, 9) for step in range(1, 7)]
    entries = [replay_runs.entry_of(replay_runs.write_step(tmp_path, table) and table) for table in tables]
    entries[2]["rewards/answer_length/mean"] = float("nan")
    entries.append({"step": float("nan"), "health/heldout_right": 1.0, "health/heldout_sampled": 2.0})
    replay_runs.write_log(tmp_path, entries)
    recording = read_run(tmp_path)
    assert weights_of(recording)[0] == (1.0, 0.0) and page_of(recording)


def test_the_log_is_that_of_the_run_and_not_of_one_beside_it(tmp_path):
    replay_runs.write_run(tmp_path / "a", steps=3)
    entries = [replay_runs.entry_of(replay_runs.table_at(step, 39)) | {"reward": 77.0} for step in range(1, 40)]
    replay_runs.write_log(tmp_path / "b", entries)
    recording = read_run(tmp_path)
    assert recording.name == "a" and recording.log.step == 3


def test_a_log_and_the_names_of_correctness_rewards_can_be_given(run, tmp_path, grpo_check):
    log = tmp_path / "log.json"
    log.write_text(json.dumps([replay_runs.entry_of(replay_runs.table_at(step, 30)) for step in range(1, 31)]))
    page = tmp_path / "page.html"
    assert grpo_check("replay", run, "--log", log, "--correctness", "answer_length", "--output", page)[0] == 0
    codes = {verdict["code"] for verdict in runs_of(page.read_text("utf-8"))[0]["verdicts"]}
    assert "reward_hacking_suspected" not in codes  # the reward that rises is said to be the accuracy
    code, _, err = grpo_check("replay", run, "--log", tmp_path / "none.json", "--output", page)
    assert code == 2 and "There is no file" in err


def test_steps_whose_completions_an_evaluation_replaced_are_left_out(tmp_path):
    tables = [replay_runs.table_at(step, 9) for step in range(1, 5)]
    entries = []
    for table in tables:
        replay_runs.write_step(tmp_path, table)
        entries.append(replay_runs.entry_of(table))
    entries.insert(2, {"step": 2, "eval_reward": 0.5})
    replay_runs.write_log(tmp_path, entries)
    recording = read_run(tmp_path)
    assert [step.number for step in recording.steps] == [1, 3, 4]
    assert any("1 step(s)" in note and "evaluation" in note for note in recording.notes)


def test_completions_that_several_steps_used_are_shown_once(tmp_path):
    for step in range(1, 5):
        replay_runs.write_step(tmp_path, replay_runs.table_at((step + 1) // 2, 9).assign(step=step))
    recording = read_run(tmp_path)
    assert [step.number for step in recording.steps] == [1, 3]
    assert any("2 step(s)" in note and "reuses" in note for note in recording.notes)


def test_a_text_is_counted_only_where_it_earned_its_most(tmp_path):
    for step in range(1, 101):
        paid = [float(step in (7, 60))] + [0.0] * 3
        table = pandas.DataFrame(dict(step=step, prompt=f"p{step}", completion=["42", "a", "b", f"c{step}"], f=paid))
        replay_runs.write_step(tmp_path, table)
    best = most_paid(read_run(tmp_path), (1.0,))[0]
    assert (best.text, best.reward, best.times, best.steps) == ("42", 1.0, 2, [7, 60])


def test_equal_rewards_are_tied_although_float32_gives_them_advantages(tmp_path):
    rows = dict(step=1, prompt=["p"] * 8 + ["q"] * 8, completion="c", f=[0.7] * 15 + [0.1])
    replay_runs.write_step(tmp_path, pandas.DataFrame(rows).assign(advantage=[6e-4] * 8 + [0.35] * 7 + [-2.4]))
    assert [group.is_tied for group in read_run(tmp_path).steps[0].groups] == [True, False]


def test_files_of_an_earlier_and_longer_run_are_named(tmp_path):
    files = [replay_runs.write_step(tmp_path, replay_runs.table_at(step, 9)) for step in range(1, 6)]
    for file in files[3:]:
        os.utime(file, (1e9, 1e9))
    assert any("From step 4 on" in note for note in read_run(tmp_path).notes)


def test_samples_of_an_earlier_run_do_not_mix_with_those_of_a_later_one(tmp_path):
    sample = {"prompt": "1 - 1?", "gold": 0, "text": "0"} | SAMPLED
    for step, text in ((10, "old"), (20, "old"), (10, "new")):
        keep(tmp_path / "health", step, [sample | {"text": text}] * 2)
    with (tmp_path / "health" / "samples.jsonl").open("a") as file:
        file.write("[" * 100_000 + "\n")
    steps = read_run(tmp_path).steps
    assert [(step.number, {each.text for each in step.completions}) for step in steps] == [(10, {"new"})]
    assert next(steps[0].completions).extras == ("1 - 1?", "0")


def test_a_checkpoint_stands_for_its_run(tmp_path, grpo_check):
    keep(tmp_path / "health", 10, [{"prompt": "1?", "gold": "1", "text": "1"} | SAMPLED])
    (tmp_path / "checkpoint-10").mkdir()
    assert grpo_check("replay", tmp_path / "checkpoint-10")[0] == 0 and (tmp_path / "replay.html").is_file()


def test_a_run_with_samples_is_not_taken_for_one_below_it(tmp_path):
    sample = {"prompt": "1?", "gold": "1", "text": "mine"} | SAMPLED
    for folder in (tmp_path / "outer", tmp_path / "checkpoint-best"):
        keep(folder / "health", 5, [sample])
    replay_runs.write_run(tmp_path / "outer" / "stage1", steps=3)
    replay_runs.write_run(tmp_path / "other", steps=3)
    for name in ("outer", "checkpoint-best"):
        recording = read_run(tmp_path / name)
        assert recording.held_out and recording.name == name


def test_the_log_of_a_run_below_is_not_taken_for_its_own(tmp_path):
    keep(tmp_path / "outer" / "health", 5, [{"prompt": "1?", "gold": "1", "text": "mine"} | SAMPLED])
    replay_runs.write_run(tmp_path / "outer" / "stage1", steps=3)
    recording = read_run(tmp_path / "outer")
    assert recording.log is None and any("no health verdicts" in note for note in recording.notes)
    replay_runs.write_log(tmp_path / "outer", [replay_runs.entry_of(replay_runs.table_at(1, 9))])
    assert read_run(tmp_path / "outer").log.step == 1


def test_completions_of_an_earlier_run_are_not_taken_for_those_of_one_that_logged_none(tmp_path, grpo_check):
    replay_runs.write_run(tmp_path, steps=3)
    entries = [{"step": 0, "health/no_completions": 1.0}]
    entries += [replay_runs.entry_of(replay_runs.table_at(step, 9)) for step in range(1, 6)]
    replay_runs.write_log(tmp_path, entries)
    code, _, err = grpo_check("replay", tmp_path)
    assert code == 2 and "but no completions" in err
    keep(tmp_path / "health", 5, [{"prompt": "1?", "gold": "1", "text": "mine"} | SAMPLED])
    recording = read_run(tmp_path)
    assert recording.held_out and next(recording.steps[0].completions).text == "mine"


def test_a_log_that_is_hours_newer_than_the_completions_is_named(tmp_path):
    replay_runs.write_run(tmp_path, steps=3)
    assert not any("an earlier run" in note for note in read_run(tmp_path).notes)
    for file in (tmp_path / "completions").iterdir():
        os.utime(file, (1e9, 1e9))
    assert any("an earlier run may have written" in note for note in read_run(tmp_path).notes)


def test_a_damaged_file_is_left_out_whatever_its_error(tmp_path):
    replay_runs.write_run(tmp_path, steps=3)
    file = tmp_path / "completions" / "completions_00002.parquet"
    whole = file.read_bytes()
    for at in range(4, len(whole), 97):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert {1, 3} <= {step.number for step in read_run(tmp_path).steps}


def test_a_long_run_is_read_at_fewer_steps(tmp_path, monkeypatch):
    replay_runs.write_run(tmp_path, steps=30)
    monkeypatch.setattr("grpo_check.replay.read.MOST_BYTES", 60_000)
    recording = read_run(tmp_path)
    numbers = [step.number for step in recording.steps]
    assert 2 <= len(numbers) < 30 <= MOST_STEPS and (numbers[0], numbers[-1]) == (1, 30)
    assert any("30 steps" in note for note in recording.notes)


def test_a_write_that_fails_leaves_nothing_behind(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(CourseError, match="No space left"):
        write_replay(read_run(run), tmp_path / "replay.html")
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_not_replaced(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CourseError, match="not a replay"):
        write_replay(read_run(run), tmp_path / "pipe")


def test_the_command_prints_the_notes_of_the_page(run, grpo_check, tmp_path):
    _, out, _ = grpo_check("replay", run, "--output", tmp_path / "page.html")
    assert "note    The weights of the rewards" in out


def test_a_run_that_has_ended_gets_its_page_or_a_reason(run, tmp_path, monkeypatch):
    monkeypatch.setattr("grpo_check.health.replaying.SECONDS", 600)  # a slow machine is no fault of the code
    monkeypatch.setattr("sys.path", [*sys.path, tmp_path])  # Python skips what is not a text, and notebooks add paths
    log = next(run.rglob("trainer_state.json"))
    assert leave_page(run, log, tmp_path / "page.html") == "" and runs_of((tmp_path / "page.html").read_text("utf-8"))
    (tmp_path / "page.html").write_text("mine")
    assert "is not a replay" in leave_page(run, log, tmp_path / "page.html")
    monkeypatch.setattr("grpo_check.health.replaying.SECONDS", 0.001)
    assert "more than 0.001 seconds" in leave_page(run, log, tmp_path / "late.html")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert "No such file" in leave_page(run, log, tmp_path / "never.html")
    monkeypatch.setattr("sys.executable", None)
    assert leave_page(run, log, tmp_path / "never.html")


def test_verdicts_stand_at_the_step_where_they_were_first_to_be_seen(data):
    steps = {verdict["code"]: verdict["step"] for verdict in data["verdicts"]}
    assert 10 < steps["reward_hacking_suspected"] < 30


def test_a_prompt_that_comes_twice_in_a_row_has_two_groups(tmp_path):
    table = replay_runs.table_at(1, 9, groups=3)
    table.loc[4:7, "prompt"] = table.loc[0, "prompt"]
    replay_runs.write_step(tmp_path, pandas.concat([table, replay_runs.table_at(1, 9, groups=4)]))
    assert [len(group.completions) for group in read_run(tmp_path).steps[0].groups] == [4] * 7


def test_texts_of_strangers_cannot_leave_the_block_of_data(tmp_path):
    name = '<img src=x onerror="1">&'
    replay_runs.write_run(tmp_path / name, steps=2, texts=[EVIL, "\u2028", "\u202eabc שלום", "]]>"])
    page = page_of(read_run(tmp_path / name))
    soup = BeautifulSoup(page, "html.parser")
    assert len(soup.find_all("script")) == 3 and not soup.find_all("img")
    assert {EVIL, "\u2028", "\u202eabc שלום", "]]>"} <= set(runs_of(page)[0]["texts"])
    assert "\u2028" not in page
    policy = soup.find("meta", attrs={"http-equiv": True})["content"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


def test_a_reward_that_logged_none_is_shown_as_none(tmp_path):
    table = replay_runs.table_at(1, 9)
    table["judge"] = None
    table["sometimes"] = [None, 1.0] * 8
    replay_runs.write_step(tmp_path, table)
    recording = read_run(tmp_path)
    assert recording.rewards == ("answer_length", "correctness_reward", "judge", "sometimes")
    first, second = list(recording.steps[0].completions)[:2]
    assert first.rewards[2:] == (None, None) and second.rewards[2:] == (None, 1.0)
    assert page_of(recording)


@pytest.mark.parametrize("column", ["prompt", "advantage", "answer_length"])
def test_a_missing_column_is_named(tmp_path, column):
    replay_runs.write_step(tmp_path, replay_runs.table_at(1, 9).drop(columns=[column, "step"]), step=1)
    recording = read_run(tmp_path)
    data = runs_of(page_of(recording))[0]
    assert len(data["steps"][0]["groups"]) == (1 if column == "prompt" else 4)
    assert any(f"no {column}" in note for note in recording.notes) == (column != "answer_length")


def test_a_run_that_goes_on_is_read_as_far_as_it_is_whole(tmp_path):
    tables = [replay_runs.table_at(step, 9) for step in range(1, 5)]
    files = [replay_runs.write_step(tmp_path, table) for table in tables]
    files[-1].write_bytes(files[-1].read_bytes()[:200])
    replay_runs.write_log(tmp_path, [replay_runs.entry_of(table) for table in tables[:2]])
    recording = read_run(tmp_path)
    assert [step.number for step in recording.steps] == [1, 2, 3]
    notes = " ".join(recording.notes)
    assert "completions_00004.parquet" in notes and "ends at step 2, the completions at step 3" in notes
    (curve, *_) = runs_of(page_of(recording))[0]["curves"]
    assert [step for step, _ in curve["points"]] == [1, 2, 3]


def broken(folder):
    replay_runs.write_step(folder, replay_runs.table_at(1, 9)).write_bytes(b"PAR1")


def foreign(folder):
    replay_runs.write_step(folder, pandas.DataFrame({"text": ["a"]}), step=1)


def other_trainer(folder):
    replay_runs.write_log(folder, [{"step": 1, "loss": 0.5}])


def without_completions(folder):
    replay_runs.write_log(folder, [replay_runs.entry_of(replay_runs.table_at(1, 9))])


def several(folder):
    for name in "ab":
        replay_runs.write_run(folder / name, steps=1)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (broken, "can be read as Parquet"),
        (foreign, "no column 'completion', only text"),
        (other_trainer, "log_completions=True"),
        (without_completions, "a log of a GRPO run, but no completions"),
        (several, "holds 2 runs"),
        (lambda folder: None, "SFTTrainer"),
        (lambda folder: folder.rmdir(), "does not exist"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence(tmp_path, grpo_check, spoil, said):
    folder = tmp_path / "run"
    folder.mkdir()
    spoil(folder)
    code, out, err = grpo_check("replay", folder)
    assert code == 2 and not out and err.startswith("Error: ") and said in err and "Traceback" not in err


def test_the_samples_of_the_callback_are_a_page_where_trl_logged_nothing(tmp_path):
    sample = {"prompt": "1 + 1?", "gold": "2", "text": "<answer>2</answer>", "ended": True, "distinct": 1.0}
    for step, right in ((10, False), (20, True)):
        keep(tmp_path / "health", step, [sample | {"in_form": True, "right": right, "answers": right}] * 3)
    with (tmp_path / "health" / "samples.jsonl").open("a") as file:
        file.write('{"step": 30, "te')
    data = runs_of(page_of(read_run(tmp_path)))[0]
    assert data["heldOut"] and [step["step"] for step in data["steps"]] == [10, 20]
    assert data["steps"][1]["groups"][0]["rows"][0][4] == [1, 1]
    assert any(curve["label"] == "correct answer" for curve in data["curves"])


def test_a_text_of_100_000_characters_is_shown_without_its_middle(tmp_path):
    replay_runs.write_run(tmp_path, steps=1, texts=["a" * 100_000, "b", "c", "d"])
    data = runs_of(page_of(read_run(tmp_path)))[0]
    assert max(row[1] for group in data["steps"][0]["groups"] for row in group["rows"]) == 100_000
    assert max(map(len, data["texts"])) < 5000 and any("middle" in note for note in data["notes"])


def test_many_rewards_are_counted_in_the_size_of_the_page(tmp_path):
    names = [f"reward_{i}" for i in range(12)]
    for step in range(1, 201):
        rows = dict(step=step, prompt=[f"p{i // 8}" for i in range(600)], completion=[f"{i}" for i in range(600)])
        rows |= {name: [-1.235 * i for i in range(600)] for name in names}
        replay_runs.write_step(tmp_path, pandas.DataFrame(rows))
    assert written(tmp_path).stat().st_size < 10e6


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """500 steps x 64 completions of 900 characters, all different."""
    folder, texts = tmp_path_factory.mktemp("large"), iter(range(10**6))
    for step in range(1, 501):
        said = [f"{next(texts)} " + "so <b> " * 128 for _ in range(64)]
        rows = dict(step=step, prompt=[f"prompt {i // 8}" for i in range(64)], completion=said)
        rewards = {"f": [float(i % 2) for i in range(64)], "advantage": [i % 2 - 0.5 for i in range(64)]}
        replay_runs.write_step(folder, pandas.DataFrame(rows | rewards))
    return written(folder)


def test_a_large_run_is_sampled_and_says_so(large):
    assert 5e6 < large.stat().st_size < 10e6
    data = runs_of(large.read_text("utf-8"))[0]
    assert any("To keep this file small" in note for note in data["notes"])
    assert len(data["curves"][0]["points"]) == 500 and data["steps"][-1]["step"] == 500


# The page itself


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """Chromium, without a network."""
    with browser.chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def page(chromium):
    """Its page, in the same window for every test, whatever the test before left."""
    chromium.size(1280, 720)
    chromium.scheme("light")
    return chromium


@pytest.fixture
def wide(tmp_path):
    """A page whose rewards need more room than most windows have."""
    table = replay_runs.table_at(1, 2)
    for name in ("form_reward", "alone_reward"):
        table[name] = 0.25
    replay_runs.write_step(tmp_path, table)
    return written(tmp_path)


@pytest.fixture
def shown(page, run):
    """The page of the run, opened."""
    page.open(written(run))
    return page


def text(page, selector):
    return page.run(f"document.querySelector({selector!r}).innerText")


def sideways(page, parts="html, #rows, #paid, #changes"):
    """The pixels by which the page, or a part of it, can be scrolled sideways."""
    return page.run(f"Math.max(...[...document.querySelectorAll('{parts}')].map((e) => e.scrollWidth - e.clientWidth))")


def stacked(page):
    """Whether the table of the group is stacked."""
    return page.run("document.querySelector('#rows table').classList.contains('stacked')")


def choose(page, name, value):
    page.run(
        f"{{const e = document.getElementById('{name}'); e.value = {value}; e.dispatchEvent(new Event('change'))}}"
    )


@needs_browser
def test_slider_and_keys_move_through_the_steps(shown, data):
    assert text(shown, "#at") == "step 1 of 30"
    shown.run("document.getElementById('step').focus()")
    shown.press("ArrowRight")
    shown.press("ArrowRight")
    assert text(shown, "#at") == "step 3 of 30"
    said = shown.run("document.getElementById('step').getAttribute('aria-valuetext')")
    assert said.startswith("step 3.") and text(shown, "#said") in said
    shown.run("document.activeElement.blur()")
    shown.press("ArrowLeft")
    assert text(shown, "#at") == "step 2 of 30"
    for key, at in (("End", "step 30 of 30"), ("Home", "step 1 of 30")):
        shown.press(key)
        assert text(shown, "#at") == at
    shown.run("{const e = document.getElementById('step'); e.value = 29; e.dispatchEvent(new Event('input'))}")
    assert text(shown, "#at") == "step 30 of 30"
    assert "reward_hacking_suspected" in text(shown, "#verdicts")
    marks = shown.run("[...document.querySelectorAll('.now')].map((e) => Math.round(e.getAttribute('x1')))")
    assert set(marks) == {334} and len(marks) == len(data["curves"])


@needs_browser
def test_the_ending_is_not_given_away(page, run, tmp_path):
    recording = replace(read_run(run), story="What will it write?", ending="It cheats.")
    write_replay(recording, tmp_path / "told.html")
    page.open(tmp_path / "told.html")
    drawn = "document.querySelector('.curve').getAttribute('points').split(' ').length"
    assert page.run(drawn) == 1 and text(page, "#ending") == "" and text(page, "#story") == "What will it write?"
    page.press("ArrowRight")
    assert page.run(drawn) == 2 and page.run("document.querySelectorAll('.spoke[visibility=visible]').length") == 0
    page.press("End")
    assert page.run(drawn) == 30 and text(page, "#ending") == "It cheats." and text(page, "#play") == "Again"
    page.press("Home")
    assert page.run(drawn) == 30 and text(page, "#ending") and text(page, "#play") == "Play"  # it was seen


@needs_browser
def test_an_address_leads_to_a_step_and_a_group_and_follows_the_reader(page, run, tmp_path):
    file = written(run, tmp_path / "page.html")
    page.open(file)
    page.run("location.hash = 'step=12&group=2'")
    time.sleep(0.2)
    assert text(page, "#at") == "step 12 of 30" and page.run("document.getElementById('group').value") == "1"
    page.press("ArrowRight")
    assert page.run("location.hash") == "#step=13&group=2"
    page.run("location.hash = 'step=999999999999&group=<b>'")
    time.sleep(0.2)
    assert text(page, "#at") == "step 13 of 30"


@needs_browser
def test_the_best_paid_answer_of_a_step_stands_first_with_its_question(shown, data):
    group, row = max(
        ((group, row) for group in data["steps"][0]["groups"] for row in group["rows"]), key=lambda pair: pair[1][3]
    )
    assert text(shown, "#asked") == data["texts"][group["prompt"]].strip().splitlines()[-1]
    assert shown.run("document.querySelector('#best .text').textContent") == data["texts"][row[0]]
    assert text(shown, "#worth").startswith("paid ")


@needs_browser
def test_nothing_jumps_while_it_plays(shown):
    heights = "[...new Set([...document.querySelectorAll('#rows .text')].map((e) => e.offsetHeight))]"
    shown.run("document.getElementById('play').click()")
    during = shown.run(heights)
    shown.run("document.getElementById('play').click()")
    assert len(during) == 1 and not shown.run("document.body.classList.contains('playing')")


@needs_browser
def test_a_verdict_that_was_opened_stays_open_at_the_next_step(shown):
    shown.press("End")
    shown.run("document.querySelector('#verdicts li:not([hidden]) summary').click()")
    shown.run("document.activeElement.blur()")
    why = text(shown, "#verdicts details[open]")
    for key in ("ArrowLeft", "End"):
        shown.press(key)
        assert "Why: " in why and text(shown, "#verdicts details[open]") == why
    shown.press("Home")
    assert text(shown, "#verdicts").startswith("No warning")


@needs_browser
def test_small_values_are_not_shown_as_0(shown):
    values = "[3.24e-5, -0.00029, 0, 0.0032, 0.5, 1234].map((value) => shown(value))"
    assert shown.run(values) == ["3.2e-5", "−2.9e-4", "0", "0.0032", "0.50", "1,234"]


@needs_browser
def test_a_rounding_error_is_no_advantage(shown):
    assert shown.run("[7.3e-7, -2e-5, 0.5, null].map(settled)") == [0, 0, 0.5, None]


@needs_browser
def test_the_button_at_the_last_group_keeps_the_focus(shown, data):
    last = len(data["steps"][0]["groups"])
    shown.run("document.getElementById('after').focus()")
    shown.run(f"for (let press = 0; press <= {last}; press++) document.activeElement.click()")
    assert shown.run("document.activeElement.id") == "after"
    assert shown.run("Number(document.getElementById('group').value)") == last - 1


@needs_browser
@pytest.mark.parametrize("width", [1280, 1024, 760, 390])
def test_a_table_of_many_rewards_fits_into_the_window(page, wide, width):
    page.open(wide)
    page.size(width, 900)
    assert sideways(page) == 0 and stacked(page) == (width < 1280)
    page.size(1280, 720)
    assert not stacked(page)


@needs_browser
def test_nothing_scrolls_sideways_although_no_script_stacks_the_tables(page, wide):
    never = "window.ResizeObserver = class { observe() {} }"
    still = page.call("Page.addScriptToEvaluateOnNewDocument", source=never)
    page.open(wide)
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=still["identifier"])
    page.size(390, 844)
    assert not stacked(page) and sideways(page, "html") == 0 < sideways(page, "#rows")


@needs_browser
def test_long_names_without_a_place_to_break_them_fit_into_a_phone(page, tmp_path):
    folder = tmp_path / ("run" * 30)  # a note has its path
    replay_runs.write_step(folder, replay_runs.table_at(1, 2).rename(columns={"answer_length": "reward" * 12}))
    page.open(written(folder))
    page.size(390, 844)
    assert stacked(page) and sideways(page) == 0


@needs_browser
def test_a_text_that_must_be_scrolled_in_a_narrow_window_is_reached_by_keys(page, tmp_path):
    replay_runs.write_step(tmp_path, replay_runs.table_at(1, 2, texts=["word " * 120] * 4))
    page.open(written(tmp_path))
    texts = "[...document.querySelectorAll('.text')].map((e) => [e.scrollHeight > e.clientHeight, e.tabIndex === 0])"
    counts = []
    for width in (1280, 390, 1280):
        page.size(width, 900)
        counts.append(sum(scrolls for scrolls, _ in page.run(texts)))
        assert all(scrolls == reached for scrolls, reached in page.run(texts))
    assert counts[0] == counts[2] < counts[1]


@needs_browser
def test_the_words_that_came_are_those_of_the_policy(page, tmp_path):
    for step, said in ((1, "no idea"), (2, "the sum is 40")):
        replay_runs.write_step(tmp_path, replay_runs.table_at(step, 2, texts=[said] * 4))
    page.open(written(tmp_path))
    words = page.run(
        "[...document.querySelectorAll('#changes .pair table:first-child tbody th')].map((e) => e.innerText)"
    )
    assert {"the", "sum", "no", "idea"} == set(words)  # not the word of the prompt, and no number


@needs_browser
def test_an_old_browser_says_what_the_page_needs(page, run):
    old = page.call("Page.addScriptToEvaluateOnNewDocument", source="delete Array.prototype.at")
    page.open(written(run))
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=old["identifier"])
    assert text(page, "#needs")
    page.open(written(run))
    assert not page.run("document.querySelector('#needs').checkVisibility()")


@needs_browser
def test_a_page_of_one_run_offers_no_choice(shown):
    assert "Choose" not in text(shown, "header")


@needs_browser
def test_a_group_is_chosen_and_its_table_is_labelled(shown, data):
    choose(shown, "group", 2)
    group = data["steps"][0]["groups"][2]
    assert shown.run("document.getElementById('prompt').textContent") == data["texts"][group["prompt"]]
    said = shown.run("[...document.querySelectorAll('#rows .text')].map((e) => e.textContent)")
    assert said == [data["texts"][row[0]] for row in group["rows"]]
    assert "group 3" in text(shown, "#rows caption")
    assert shown.run("document.querySelectorAll('th:not([scope])').length") == 0


@needs_browser
def test_two_steps_are_compared(shown):
    choose(shown, "from", 4)
    choose(shown, "to", 28)
    head = shown.run("[...document.querySelectorAll('#changes thead th')].slice(0, 3).map((e) => e.textContent)")
    assert head == ["step 5", "step 29", "change"]
    assert "<answer>" in shown.run("document.querySelectorAll('#changes .pair > div')[1].textContent")


@needs_browser
def test_at_390_pixels_nothing_scrolls_sideways_and_dark_is_dark(shown):
    light = shown.run("getComputedStyle(document.body).backgroundColor")
    shown.size(390, 844)
    shown.scheme("dark")
    assert sideways(shown) == 0
    assert shown.run("getComputedStyle(document.body).backgroundColor") != light


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_color_can_be_read(shown, scheme):
    shown.scheme(scheme)
    style = "getComputedStyle(document.documentElement)"
    colors = [shown.run(f"{style}.getPropertyValue('--{name}')") for name in COLORS.split()]
    light = [luminance(color.strip()) for color in colors]
    for ink in light[3:]:
        for paper in light[:3]:
            assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722)))


@needs_browser
def test_a_completion_that_tries_to_run_a_script_is_only_text(page, tmp_path):
    replay_runs.write_run(tmp_path / "evil", steps=2, texts=[EVIL, "a", "b", "c"])
    page.events.clear()
    page.open(written(tmp_path / "evil", tmp_path / "evil.html"))
    time.sleep(0.2)
    assert page.run("document.title") == "Replay: evil"
    assert EVIL in page.run("[...document.querySelectorAll('#rows .text')].map((e) => e.textContent)")
    assert page.run("document.querySelectorAll('img, script').length") == 3
    assert [address for address in page.requests() if not address.startswith("file:")] == []


@needs_browser
def test_a_large_run_opens_at_once(page, large):
    before = page.seconds()
    page.open(large)
    assert page.seconds() - before < 2  # of work, not of the clock: other tests run at the same time
    assert text(page, "#at") == "step 1 of 500"
