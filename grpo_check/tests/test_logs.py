"""Logs as people have them: in the spellings of other versions and tools, as tables, notebooks and printed texts."""

import csv
import io
import json
import math
import pprint
import subprocess
import sys
from pathlib import Path

import pytest
from grpo_check.health.rules.rule import log_of
from grpo_check.logs.files import read_log
from grpo_check.logs.log import Log, read_history
from grpo_core.errors import CourseError
from health_logs import codes, simulate

from grpo_check import diagnose, diagnose_file

REWARDS = {"correctness_reward": (2.0, lambda step: 0.2 + step / 60), "xml_form": (0.5, lambda step: 0.0)}
#: A run of TRL 0.16 that learns, and never earns its format.
OLD = [
    {
        "loss": 0.0,
        "reward": entry["reward"],
        "reward_std": entry["reward_std"],
        "completion_length": entry["completions/mean_length"],
        "kl": 0.001,
        "rewards/correctness_reward": entry["rewards/correctness_reward/mean"],
        "rewards/xml_form": 0.0,
        "step": entry["step"],
    }
    for entry in simulate(40, REWARDS, length=lambda step: 80.0)
]
NAMES = list(OLD[0])


def renamed(name: str, prefix: str = "", step: str = "step") -> list[dict]:
    """The log with the name of the mean of a reward as given, ``{}`` for the reward, and a prefix for all names."""

    def new(key: str) -> str:
        return step if key == "step" else prefix + (name.format(key[8:]) if key.startswith("rewards/") else key)

    return [{new(key): value for key, value in entry.items()} for entry in OLD]


#: How versions and tools write the same metrics.
SPELLED = {
    "TRL until 0.16": OLD,
    "TRL since 0.17": renamed("rewards/{}/mean"),
    "W&B, of an old TRL": renamed("rewards/{}", "train/", "train/global_step"),
    "W&B, of a new TRL": renamed("rewards/{}/mean", "train/", "train/global_step"),
    "a notebook's table": renamed("rewards / {} / mean", step="Step"),
    "ms-swift": [
        {key: value for key, value in entry.items() if key != "step"} | {"global_step/max_steps": f"{entry['step']}/40"}
        for entry in renamed("rewards/{}/mean")
    ],
}


@pytest.mark.parametrize("log", SPELLED.values(), ids=SPELLED)
def test_a_log_says_the_same_in_every_spelling(log):
    read = read_history(log)
    assert list(read.rewards) == ["correctness_reward", "xml_form"] and read.of_kind("correctness")
    assert read.values("completions/mean_length") == [entry["completion_length"] for entry in OLD]
    assert (read.step, read.unit) == (40, "step") and codes(log) == codes(OLD) == ["dead_reward"]


def test_of_two_names_for_the_same_the_first_spelling_counts():
    entry = {"step": 3, "_step": 9, "reward": 0.5, "completion_length": 1400.0, "completions/mean_length": 1000.0}
    log = read_history([entry, entry | {"step": 4, "completions/mean_length": None}])
    assert [one["step"] for one in log.entries] == [3, 4] and log.values("completions/mean_length") == [1000.0, 1400.0]


def test_the_summary_at_the_end_is_no_loss_and_an_evaluation_is_no_step():
    log = read_history([*OLD, {"step": 40, "train_loss": float("nan")}, {"step": 40, "eval/reward": 9.0}])
    assert log.values("loss") == [0.0] * 40 and log.values("reward")[-1] == OLD[-1]["reward"]


def as_csv(rows: list[list], **how) -> str:
    text = io.StringIO()
    csv.writer(text, **how).writerows(rows)
    return text.getvalue()


def table(step: str = "Step", loss: str = "Training Loss", **how) -> str:
    """The table of a notebook as a file."""
    header = [{"step": step, "loss": loss}.get(name, name.replace("/", " / ")) for name in NAMES]
    return as_csv([header, *([entry[name] for name in NAMES] for entry in OLD)], **how)


def chart(*runs: str) -> str:
    """W&B's export of a chart of the reward."""
    header = ["Step", *(f"{run} - train/reward{end}" for run in runs for end in ("", "__MIN", "__MAX"))]
    return as_csv(
        [header, *([entry["step"]] + [entry["reward"]] * 3 * len(runs) for entry in OLD)], quoting=csv.QUOTE_ALL
    )


def history(gap: str) -> str:
    """W&B's history of a run as pandas writes it: evaluations have rows of their own, with gaps for all else."""
    rows = [["", "_step", "_runtime", "train/global_step", *(f"train/{name}" for name in NAMES[:-1]), "eval/reward"]]
    for number, entry in enumerate(OLD):
        rows.append([2 * number, 2 * number, 0.5, entry["step"], *(entry[name] for name in NAMES[:-1]), gap])
        rows.append([2 * number + 1, 2 * number + 1, 0.6, entry["step"], *[gap] * (len(NAMES) - 1), 0.3])
    return as_csv(rows)


def printed(write=str, bar: str = "") -> str:
    """What the trainer prints, without a step, with a progress bar before each line."""
    entries = [{key: value for key, value in entry.items() if key != "step"} for entry in OLD]
    return "".join(f"{bar.format(5 * at)}{write(entry)}\n" for at, entry in enumerate(entries, start=1))


def quoted(entry: dict) -> str:
    """As transformers 5 prints it."""
    return str({key: f"{value:.6g}" for key, value in entry.items()})


def page() -> str:
    """The table of a notebook as HTML."""
    rows = "".join(
        f"<tr>{''.join(f'<t{kind}>{cell}</t{kind}>' for cell in row)}</tr>"
        for kind, row in [("h", table().splitlines()[0].split(",")), *(("d", entry.values()) for entry in OLD)]
    )
    return f"<div><progress value='40'></progress><table border='1'>{rows}</table><p>done</p></div>"


def lines(start: str, between: str = "=") -> str:
    """What a callback of one's own prints, in which the step stands before the metrics."""
    named = [[f"{name}{between}{value:.6f}" for name, value in entry.items() if name != "step"] for entry in OLD]
    said = [f"{start.format(step=entry['step'])}{' '.join(each)}" for entry, each in zip(OLD, named, strict=True)]
    return "\n".join(said)


def notebook(*outputs: dict) -> str:
    cells = [{"cell_type": "markdown", "source": ["# Train"]}]
    cells += [{"cell_type": "code", "source": "trainer.train()", "outputs": [output]} for output in outputs]
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5})


BAR = "\r  3%|▎         | {}/200 [00:34<07:28,  4.72s/it]"
MARKDOWN = "\n".join(f"| {line.replace(',', ' | ')} |" for line in table().splitlines())
#: The run as text, and the last step that is read there: numbered, as its progress bar has it, or counted.
FORMS = {
    "a trainer's state": (json.dumps({"global_step": 40, "log_history": OLD}), 40),
    "JSON lines, the last one cut off": ("\n".join(map(json.dumps, [*OLD, OLD[0]]))[:-20], 40),
    "the history of W&B": (history(""), 40),
    "the history of W&B with NaN": (history("NaN"), 40),
    "the table as CSV": (table(), 40),
    "the table with semicolons": (table(delimiter=";"), 40),
    "the table as it is pasted": (f"My run:\n\n{table(delimiter=chr(9))}\nWhat is wrong?", 40),
    "the table in Markdown": (MARKDOWN.replace("\n", f"\n|{'---|' * len(NAMES)}\n", 1), 40),
    "the table that pandas prints": ("\n".join(line.replace(",", "   ") for line in table().splitlines()), 40),
    "the table as HTML": (page(), 40),
    "a notebook with a table": (
        notebook({"output_type": "display_data", "data": {"text/html": [page()], "text/plain": ["<IPython …>"]}}),
        40,
    ),
    "a notebook with printed lines": (notebook({"output_type": "stream", "text": printed().splitlines(True)}), 40),
    "a list under a name of one's own": (json.dumps({"total_steps": 40, "steps": OLD}), 40),
    "a list for each metric": (json.dumps({name: [entry[name] for entry in OLD] for name in NAMES}), 40),
    "lines of a callback": (lines("[Step {step}] "), 40),
    "lines in a notebook with a table of losses": (
        notebook(
            {
                "output_type": "display_data",
                "data": {"text/html": ["<table><tr><th>Step</th><th>Loss</th></tr></table>"]},
            },
            {"output_type": "stream", "text": lines("step {step}/40: ", ": ").splitlines(True)},
        ),
        40,
    ),
    "printed": (printed(), 40),
    "printed by transformers 5": (printed(quoted), 40),
    "printed in several lines": (printed(pprint.pformat), 40),
    "printed in colors": (printed(lambda entry: f"\x1b[32m{entry}\x1b[0m"), 40),
    "printed after progress bars": (printed(bar=BAR), 200),
    "printed between other bars": (printed(bar=BAR + "\nProcessed prompts: 100%|███| 8/8 [00:01<00:00]\n"), 200),
}


@pytest.mark.parametrize(("text", "step"), FORMS.values(), ids=FORMS)
def test_a_log_says_the_same_in_every_form(text, step, tmp_path):
    file = tmp_path / "log"
    file.write_text(text, encoding="utf-8")
    log = read_history(read_log(file))
    assert log.values("reward") == pytest.approx([entry["reward"] for entry in OLD], rel=1e-4)
    assert (len(log.entries), log.step, list(log.rewards)) == (40, step, ["correctness_reward", "xml_form"])
    assert [finding.code for finding in diagnose_file(file)] == ["dead_reward"]


def test_steps_that_a_log_does_not_number_are_called_entries(tmp_path):
    for bar, said in (("", "(entry 40)"), (BAR, "(step 200)")):
        (tmp_path / "console.txt").write_text(printed(bar=bar), encoding="utf-8")
        assert said in diagnose_file(tmp_path / "console.txt")[0].what


def test_a_chart_of_w_and_b_is_read_and_one_of_several_runs_names_them(tmp_path):
    (tmp_path / "one.csv").write_text(chart("calm-sun-3"), encoding="utf-8")
    assert read_history(read_log(tmp_path / "one.csv")).values("reward") == [entry["reward"] for entry in OLD]
    (tmp_path / "two.csv").write_text(chart("calm-sun-3", "old-sea-4"), encoding="utf-8")
    with pytest.raises(CourseError, match="calm-sun-3, old-sea-4"):
        read_log(tmp_path / "two.csv")


def test_what_powershell_writes_is_read(tmp_path):
    (tmp_path / "log.txt").write_bytes(printed().encode("utf-16"))
    assert len(read_log(tmp_path / "log.txt")) == 40


def test_a_nan_in_a_table_is_still_one(tmp_path):
    """A gap in a table may be written as NaN, but a loss of NaN has a reward next to it."""
    rows = [line.split(",") for line in table().splitlines()]
    rows[-1][NAMES.index("loss")] = "nan"
    (tmp_path / "table.csv").write_text(as_csv(rows), encoding="utf-8")
    assert [finding.code for finding in diagnose_file(tmp_path / "table.csv")] == ["nan"]


@pytest.mark.parametrize("text", ["", "hello", "name,size\na,1\n", "<table><tr><td>1</td></tr></table>", "{'a': 1}"])
def test_health_and_replay_answer_what_is_no_log_in_the_same_words(text, tmp_path, grpo_check):
    (tmp_path / "run" / "completions").mkdir(parents=True)
    file = tmp_path / "file.txt"
    file.write_text(text, encoding="utf-8")
    code, _, said = grpo_check("health", file)
    assert code == 2 and "contains no log" in said and "W&B" in said
    assert grpo_check("replay", tmp_path / "run", "--log", file) == (2, "", said)


def test_the_table_that_trl_shows_has_no_rewards_and_says_what_it_has(tmp_path):
    (tmp_path / "table.csv").write_text("Step,Training Loss\n10,0.01\n20,0.02\n", encoding="utf-8")
    with pytest.raises(CourseError, match="found: Step, Training Loss"):
        diagnose_file(tmp_path / "table.csv")


# --- folders


def write_state(folder: Path, step: int, entries: list[dict]) -> Path:
    folder.mkdir(parents=True)
    file = folder / "trainer_state.json"
    file.write_text(json.dumps({"epoch": 1.0, "global_step": step, "log_history": entries}), encoding="utf-8")
    return file


def test_a_state_that_was_cut_off_leaves_the_one_before_it(tmp_path):
    write_state(tmp_path / "checkpoint-20", 20, OLD[:20])
    file = write_state(tmp_path / "checkpoint-40", 40, OLD)
    file.write_text(file.read_text()[:-30])
    assert read_log(tmp_path) == OLD[:20]


def test_a_folder_with_several_runs_is_refused_as_replay_refuses_it(tmp_path, grpo_check):
    """The newest step was judged, and a later stage with fewer steps was not mentioned."""
    for stage, steps in (("1-form", 20), ("2-answers", 40)):
        write_state(tmp_path / "stages" / stage / "checkpoint-9", steps, OLD[:steps])
    code, said, error = grpo_check("health", tmp_path / "stages")
    assert (code, said) == (2, "") and "holds 2 runs" in error and "1-form" in error and "2-answers" in error
    assert read_log(tmp_path / "stages" / "1-form") == OLD[:20]


def test_the_run_in_a_folder_is_read_and_not_one_in_a_folder_below_it(tmp_path):
    write_state(tmp_path / "checkpoint-10", 10, OLD[:10])
    write_state(tmp_path / "health", 20, OLD[:20])
    write_state(tmp_path / "another" / "checkpoint-40", 40, OLD)
    assert read_log(tmp_path) == OLD[:20]
    write_state(tmp_path / "health" / "checkpoint-30", 30, OLD[:30])  # a run whose folder is called health
    assert read_log(tmp_path / "health") == OLD[:30]


def test_a_folder_is_parsed_once(tmp_path, monkeypatch):
    for step in (10, 20, 40):
        write_state(tmp_path / f"checkpoint-{step}", step, OLD[:step])
    parsed, loads = [], json.loads
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or loads(text))
    diagnose_file(tmp_path / "checkpoint-40")
    assert len(parsed) == 1


def test_a_folder_that_vanishes_while_it_is_read_is_one_sentence(tmp_path, grpo_check, monkeypatch):
    file = write_state(tmp_path / "checkpoint-40", 40, OLD)
    file.unlink()
    file.symlink_to(tmp_path / "gone")  # as os.walk sees a file that is deleted a moment later
    code, said, error = grpo_check("health", tmp_path)
    assert (code, said) == (2, "") and error.count("\n") == 1 and "no trainer_state.json" in error


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc on this system")
def test_a_folder_of_processes_that_come_and_go_is_one_sentence(grpo_check):
    code, said, error = grpo_check("health", "/proc")
    assert (code, said) == (2, "") and error.startswith("Error: ") and error.count("\n") == 1


# --- the terminal


def test_a_reader_that_stops_early_gets_no_traceback(tmp_path):
    (tmp_path / "log.json").write_text(json.dumps(OLD), encoding="utf-8")
    shell = f"{sys.executable} -m grpo_check health {tmp_path / 'log.json'} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reward_for_correctness_is_named_in_the_terminal(tmp_path, grpo_check):
    log = log_of(40, reward=lambda step: step / 40, rewards__stage__mean=lambda step: step / 40)
    (tmp_path / "log.json").write_text(json.dumps(log), encoding="utf-8")
    _, said, _ = grpo_check("health", tmp_path / "log.json")
    assert "unchecked" in said and "--correctness NAME" in said and "correctness=" not in said
    code, said, _ = grpo_check("health", tmp_path / "log.json", "--correctness", "stage")
    assert code == 0 and said.startswith("note    healthy")
    code, _, said = grpo_check("health", tmp_path / "log.json", "--correctness", "stag")
    assert code == 2 and "'stag'" in said and "stage" in said


def test_a_log_that_is_read_in_parts_has_all_spellings():
    log = Log()
    for entry in OLD:
        log.add([entry])
    assert log.entries == read_history(OLD).entries


def test_a_dictionary_may_have_lost_its_bracket(tmp_path):
    (tmp_path / "pasted.txt").write_text("'loss': 0.1, 'reward': 0.5, 'kl': 1.2}\n{'loss': 0.1, 'reward': 0.7}\n")
    assert [entry["reward"] for entry in read_log(tmp_path / "pasted.txt")] == ["0.5", "0.7"]


SHORT = log_of(
    3, kl=1.2, frac_reward_zero_std=1.0, completions__clipped_ratio=0.8, grad_norm=lambda step: math.nan,
    rewards__accuracy__mean=0.0, rewards__accuracy__std=0.0,
)  # fmt: skip


def test_the_lines_of_verl_are_read_under_trls_names(tmp_path):
    file = tmp_path / "train.log"
    line = "(main_task pid=7)\x1b[0m step:{} - actor/kl_loss:0.001 - critic/score/mean:{} - response_length/mean:{} - "
    line += "response_length/clip_ratio:0.250 - actor/grad_norm:1.08"
    file.write_text("\n".join(line.format(step, step / 40, 300 - 5 * step) for step in range(1, 31)))
    log = read_history(read_log(file))
    assert log.step == 30 and log.values("reward")[:2] == [0.025, 0.05] and log.clipped[0] == 0.25
    assert log.values("kl")[0] == 0.001 and log.values("completions/mean_length")[-1] == 150


def test_a_share_of_correct_answers_beside_the_rewards_is_known():
    rows = [
        {"train/global_step": step, "train/reward": 0.5 + step / 90, "train/accuracy": step / 40} for step in range(40)
    ]
    assert codes(rows) == ["healthy"]
    assert "accuracy 0.0" in diagnose(rows)[0].seen
    (only,) = diagnose([{"step": 1000, "reward": 0.49, "accuracy": 0.99}])
    assert (
        only.code == "healthy" and "one entry, which shows no trend" in only.seen and "accuracy 0.99;" not in only.seen
    )


def test_several_runs_in_one_file_are_named_and_a_resumed_one_is_not():
    rows = [{"step": step, "reward": step / 40} for step in range(1, 31)]
    assert "begun_again" in codes([*rows, *rows, *rows])
    finding = next(one for one in diagnose([*rows, *rows, *rows]) if one.code == "begun_again")
    assert finding.severity == "note" and "3 times from step 1" in finding.seen
    assert "begun_again" not in codes([*rows, *rows[10:]])


def test_what_a_reward_prints_of_each_sample_is_no_log(tmp_path):
    file = tmp_path / "console.txt"
    samples = "".join(f"sample {n}: length=120 reward=1.0\n" for n in range(8))
    file.write_text("".join(samples + line + "\n" for line in printed().splitlines()))
    assert len(read_history(read_log(file)).entries) == 40
    file.write_text(samples)
    with pytest.raises(CourseError, match="contains no log"):
        read_log(file)


def test_a_number_at_the_end_of_a_sentence_is_one(tmp_path):
    file = tmp_path / "console.txt"
    file.write_text("step 1: reward=0.5. kl=0.1, loss=2e-3.\nstep 2: reward=0.6. kl=0.1, loss=1e-3.\n")
    assert read_history(read_log(file)).values("reward") == [0.5, 0.6]


def test_a_count_beside_the_rewards_is_no_share():
    rows = [{"step": step, "reward": 0.5, "correct": f"{1 + step % 2}/16"} for step in range(1, 31)]
    assert "healthy" not in codes(rows) and "rewards/correct/mean" not in read_history(rows).entries[0]


def test_completions_that_all_have_one_length_were_cut_off():
    rows = [{"step": step, "reward": 0.2, "completion_length": 256.0} for step in range(1, 41)]
    assert codes(rows)[0] == "all_truncated"
    assert "all_truncated" not in codes([row | {"completion_length": 2.0} for row in rows])
    assert "all_truncated" not in codes([row | {"completion_length": 256.0 - row["step"] % 2} for row in rows])
    assert "all_truncated" not in codes([row | {"completions/clipped_ratio": 0.0} for row in rows])


def test_what_a_few_rows_show_is_said_though_they_are_too_few():
    [said] = diagnose(SHORT[:2])
    assert said.code == "too_short"
    for fact in ("kl up to 1.2", "100% of the latest groups tied", "80% of the latest completions cut off"):
        assert fact in said.seen
    assert "grad_norm is not a number in 2 of 2 entries" in said.seen and "accuracy = 0 for every" in said.seen


def test_what_is_usual_is_not_said_of_a_few_rows():
    [said] = diagnose(log_of(2, kl=0.01, completions__clipped_ratio=0.05, grad_norm=0.1))
    assert said.seen.endswith("So far: mean reward 0.5 -> 0.5 (first and last logged step)")
