import json
import platform
import re
import subprocess
import sys
from importlib.metadata import version

import psutil
import pytest
from course import judged
from grpo_core.errors import CourseError
from grpo_core.training import measuring
from grpo_core.training.measuring import write_report

from grpo_utils import runs
from grpo_utils.rewards import math_rewards
from grpo_utils.runs import read_report, resume_run, reward_settings, start_run

FORM = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"


def finish(folder) -> None:
    write_report(folder, {"train_seconds": 1.23, "wall_seconds": 4.56})
    (folder / "merged").mkdir()


@pytest.mark.parametrize("name", ["", "deep/run"])
def test_a_new_folder_is_made_and_an_empty_one_is_used(tmp_path, name):
    folder, said = start_run(tmp_path / name)
    assert folder.is_dir() and said == f"New run in {folder}."


def test_a_finished_run_is_renamed_and_kept(tmp_path):
    folder, _ = start_run(tmp_path / "run")
    finish(folder)
    _, said = start_run(tmp_path / "run")
    kept = next(tmp_path.glob("run-finished-*"))
    assert re.fullmatch(r"run-finished-\d{8}-\d{6}", kept.name)
    assert (kept / "report.json").exists() and (kept / "merged").is_dir()
    assert said == f"{folder} held a finished run: it is kept as {kept}. This run starts clean."
    assert not (folder / "report.json").exists()


def test_a_killed_run_is_renamed_and_the_next_starts_clean(tmp_path):
    folder, _ = start_run(tmp_path / "run")
    (folder / "checkpoints").mkdir()
    _, said = start_run(tmp_path / "run")
    assert next(tmp_path.glob("run-unfinished-*")).joinpath("checkpoints").is_dir()
    assert "an unfinished run" in said and "starts clean" in said


def test_a_run_that_is_still_at_work_is_left_alone(tmp_path):
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    (tmp_path / "run").mkdir()
    started = {"pid": worker.pid, "process_started": psutil.Process(worker.pid).create_time()}
    (tmp_path / "run" / "started.txt").write_text(json.dumps(started))
    with pytest.raises(CourseError, match=f"in use by another run .process {worker.pid}"):
        start_run(tmp_path / "run")
    worker.kill()
    worker.wait()
    assert "an unfinished run" in start_run(tmp_path / "run")[1]


def test_a_model_inside_the_folder_of_the_run_is_not_renamed_away(tmp_path):
    folder, _ = start_run(tmp_path / "run")
    finish(folder)
    with pytest.raises(CourseError, match="Choose another OUTPUT_DIR"):
        start_run(folder, str(folder / "merged"))
    assert (folder / "merged").is_dir()
    start_run(tmp_path / "second", str(folder / "merged"))


def test_an_unfinished_run_is_continued_where_it_is(tmp_path, monkeypatch):
    start_run(tmp_path / "run")
    monkeypatch.setattr(runs, "newest_checkpoint", lambda folder: folder / "checkpoint-25")
    folder, checkpoint = resume_run(tmp_path / "run")
    assert folder == tmp_path / "run" and checkpoint == folder / "checkpoints" / "checkpoint-25"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_that_its_time_limit_ended_goes_on_and_keeps_what_it_had(tmp_path, monkeypatch):
    folder, _ = start_run(tmp_path / "run")
    write_report(folder, {"stopped": "Training ended after 28 of 60 steps"})
    (folder / "merged").mkdir()
    monkeypatch.setattr(runs, "newest_checkpoint", lambda folder: folder / "checkpoint-28")
    resume_run(folder)
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"started.txt", "checkpoint-28-report.json", "checkpoint-28-merged"}


@pytest.mark.parametrize("report", [False, True])
def test_a_run_that_cannot_be_continued_says_why(tmp_path, report):
    folder, _ = start_run(tmp_path / "run")
    if report:
        (folder / "report.json").write_text("{}")
    why = "is finished. Set RESUME=False" if report else "has no complete checkpoint. Set OUTPUT_DIR"
    with pytest.raises(CourseError, match=why):
        resume_run(folder)


def test_two_runs_of_one_second_are_both_kept(tmp_path):
    for _ in range(3):
        start_run(tmp_path / "run")
    assert len(list(tmp_path.glob("run-unfinished-*"))) == 2


def test_somebody_elses_folder_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CourseError, match="not empty, and its files are not from a run"):
        start_run(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_report_survives_the_way_to_the_file_and_back(tmp_path):
    write_report(tmp_path, {"train_seconds": 1.26, "wall_seconds": 3.0, "model": "größer"})
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    report = read_report(tmp_path)
    assert report.pop("machine")["python"] == platform.python_version()
    assert report == {"train_seconds": 1.3, "wall_seconds": 3.0, "model": "größer"}


def test_the_merged_model_is_a_row_of_the_table_and_compared_with_the_base(tmp_path, capsys):
    before, after = (judged([text] * 6, [text] * 6, ["42"] * 6) for text in ("no", FORM))
    measuring.finish(tmp_path, vars(before), vars(after), merged=vars(after), steps=3)
    report, said = read_report(tmp_path), capsys.readouterr().out
    assert report["merged"] == report["after"] and report["merged_p_value"] == report["p_value"] < 0.05
    assert report["steps"] == 3 and report["versions"] and report["written"]
    assert "\nmerged" in said and said.endswith(f"written: {tmp_path / 'report.json'}\n")


def test_a_folder_with_the_name_of_a_package_does_not_keep_the_report_from_being_written(tmp_path, monkeypatch):
    """A folder unsloth/ can be imported, so its version was asked for: PackageNotFoundError, after the training."""
    (tmp_path / "vendored").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(measuring, "PACKAGES", ("vendored", "trl"))
    assert measuring.versions() == {"vendored": "not installed", "trl": version("trl")}


def test_a_missing_report_is_an_error(tmp_path):
    with pytest.raises(CourseError, match="no run has finished there"):
        read_report(tmp_path)


def test_weights_are_paired_with_names():
    assert reward_settings(math_rewards().rewards, [1.0, 0.5, 0.0])[1] == {
        "name": "strict_format_reward",
        "weight": 0.5,
    }
