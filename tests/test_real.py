"""The real model trains in a template with three files changed, and its rewards start before an answer is right."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from real_completions import COMPLETIONS, GOLD, earned_by

from grpo_utils import smollm2
from grpo_utils.__main__ import main
from grpo_utils.data.extraction import CITIES, ITEMS, NAMES, extraction_rows
from grpo_utils.project import TEMPLATES
from grpo_utils.real import measuring, training


@pytest.fixture(scope="module")
def real():
    """The two modules of `make real`, and experiments/bench_real.py."""
    import bench_real

    return SimpleNamespace(run=training, measure=measuring, bench=bench_real)


def make_real(monkeypatch, *options):
    """`python -m grpo_utils real`, in this process."""
    monkeypatch.setattr(sys, "argv", ["grpo_utils", "real", *options])
    main()


@pytest.fixture(scope="module")
def rewards(real, tmp_path_factory):
    """The project's rewards.py, imported from the project as train.py does."""
    project = real.run.write_project(tmp_path_factory.mktemp("real") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(project))
        spec = importlib.util.spec_from_file_location("real_rewards", project / "rewards.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize("text, earned", [(text, earned) for text, *earned in COMPLETIONS])
def test_a_completion_earns_what_it_deserves(rewards, text, earned):
    assert earned_by(rewards, text) == pytest.approx(earned)


def test_the_rest_of_the_project_is_the_template(real, rewards, tmp_path):
    project, template = real.run.write_project(tmp_path / "p"), TEMPLATES / "structured_output"
    changed = {path.name for path in real.run.PROJECT.iterdir() if path.is_file()}
    assert changed == {"data.py", "rewards.py", "config.yaml"}
    assert (project / "train.py").read_text() == (template / "train.py").read_text()
    assert all((project / name).read_text() == (real.run.PROJECT / name).read_text() for name in changed)


def test_too_little_memory_stops_before_the_download(real, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2e9))
    monkeypatch.setattr(smollm2, "fetch", lambda: pytest.fail("it was downloaded"))
    with pytest.raises(SystemExit, match="Error: 2.0 GB of memory are free, and the training needs 5 GB"):
        make_real(monkeypatch)


@pytest.mark.parametrize("fast", [False, True])
def test_a_processor_without_bf16_is_told_the_time_before_anything_slow(real, monkeypatch, capsys, fast):
    monkeypatch.setattr(smollm2, "check_memory", lambda: None)
    monkeypatch.setattr(smollm2, "fetch", lambda: Path("model"))
    monkeypatch.setattr(smollm2, "fast_bf16", lambda: fast)
    monkeypatch.setattr(real.run, "base_result", lambda *arguments: sys.exit())
    with pytest.raises(SystemExit):
        make_real(monkeypatch)
    said = capsys.readouterr().out
    assert ("fp32" in said) is not fast and ("half an hour" in said) is fast and "Expected total" in said


def test_the_three_rates_are_told_apart(real):
    kinds = ["known sentence", "new sentence"] * 10
    before = dict(greedy=[False] * 20, sampled=[[False] * 7 + [True]] * 4 + [[False] * 8] * 6, kinds=kinds)
    after = dict(greedy=[True, False] * 10, sampled=[[True] * 8] * 4 + [[False] * 8] * 6, kinds=kinds)
    table = real.measure.compare_results(before, after).splitlines()
    assert table[1].split()[:4] == ["greedy,", "all", "20", "0.000"] and "p = 0.002 (McNemar)" in table[1]
    assert "1.000 (0.722 to 1.000)" in table[2] and "p = 1 (McNemar)" in table[3]
    assert table[4].startswith("greedy, the same prompts") and table[4].split()[4:7] == ["10", "0.000", "0.500"]
    assert table[5].split()[:4] == ["sampled", "10", "0.050", "0.400"]
    assert table[6].split()[:4] == ["pass@8", "10", "0.400", "0.400"]  # sharper, and no new ability


def test_transcripts_show_the_same_prompts_before_and_after(real):
    before = dict(texts=["no idea", "none"])
    after = dict(texts=[GOLD, "{}"], kinds=["known sentence", "new sentence"], asked=["Omar ordered", "Send"])
    shown = real.measure.transcripts(before, after, count=1).splitlines()
    assert shown == ["Omar ordered (known sentence)", "  before: 'no idea'", f"  after:  {GOLD!r}"]


def test_a_run_stopped_after_training_is_only_measured(real, monkeypatch, tmp_path):
    trained = []
    monkeypatch.setattr(real.run, "train", lambda *arguments: trained.append(arguments))
    monkeypatch.setattr(real.run, "measure_merged", lambda *arguments, **options: dict(greedy=[True]))
    for _ in "fresh", "again":
        (tmp_path / "report.json").write_text("{}")
        real.run.run_once(tmp_path, "orders", 0, tmp_path, [])
    assert len(trained) == 1 and json.loads((tmp_path / "result.json").read_text()) == dict(greedy=[True])


def stored_runs(bench) -> dict:
    """Results as `make bench-real` keeps them: two seeds of `make real`, and of one other setting."""
    about = dict(date="2026-01-01", processor="a processor", python="3.11", versions={"trl": "1.14.0"})
    curves = dict(correct=[0.0, 0.5], fields=[0.2, 0.8], entropy=[1.0, 0.1], seconds=[60.0, 60.0])
    before, after = dict(greedy="0000", sampled=[0, 0]), dict(greedy="1101", sampled=[8, 4])
    names = [(bench.USUAL, bench.STEPS), (bench.USUAL, bench.FEWER_STEPS), ("groups of 8", bench.FEWER_STEPS)]
    rows = [
        dict(task="orders", variant=variant, seed=seed, steps=steps, before=before, after=after) | curves
        for variant, steps in names
        for seed in (0, 1)
    ]
    return about | dict(rows=rows)


def test_the_results_show_each_seed_and_new_sentences_apart(real):
    section = real.bench.section(stored_runs(real.bench))
    cells = "0.000 to 0.750 | 0.000 to 0.500 | 0.000 to 1.000 | 0.000 to 1.000 | 0.000 to 0.750 | 0.000 to 1.000"
    assert all(f"| orders | {seed} | {cells} | none shown | 2 |" in section for seed in (0, 1))
    assert "- orders, seed 1: greedy +0.750 (" in section and "p = 0.25: no change shown; sampled +0.750" in section


@pytest.mark.parametrize(
    ("right_before", "greedy", "right", "kind"),
    [
        (0, "1", 8, "new in eight tries"),
        (0, "0", 8, "more found in eight tries"),
        (0, "0", 0, "none shown"),
        (1, "1", 8, "sharpening"),  # no gain in pass@8
        (1, "0", 8, "less noise"),
    ],
)
def test_the_kind_of_gain_follows_from_three_tests(real, right_before, greedy, right, kind):
    before, after = dict(greedy="0" * 10, sampled=[right_before] * 10), dict(greedy=greedy * 10, sampled=[right] * 10)
    assert real.bench.kind_of_gain(dict(before=before, after=after)) == kind


def test_settings_are_compared_seed_by_seed(real):
    table = real.bench.compared(stored_runs(real.bench))
    assert "| as in `make real` | 0.750, 0.750 | the base | 0.25 | 0.50 | 0.55 | 2 |" in table
    [line] = [line for line in table.splitlines() if line.startswith("| groups of 8 |")]
    assert "no difference shown: +0.000" in line and "learning rate" not in table.partition("| setting |")[2]


@pytest.mark.slow
def test_two_steps_train_merge_and_measure(real, real_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # a second one waits for the tests next to it
    small = ["--max_steps", "2", "--gradient_accumulation_steps", "1", "--max_completion_length", "64"]
    small += ["--eval_rows", "10", "--save_steps", "1"]
    folder = tmp_path / "run"
    real.run.train(real_model, "orders", 0, folder, small)
    report = json.loads((folder / "report.json").read_text())
    assert report["steps"] == 2 and report["before"]["n"] == 10
    monkeypatch.setattr(real.measure, "DECODING", dict(max_new_tokens=8, batch_size=8, seed=0))
    found = real.measure.measure_merged(real_model, folder / "model", folder / "merged", "orders", "dev", 4, 1)
    assert (len(found["greedy"]), len(found["sampled"]), len(found["sampled"][0])) == (4, 1, 8)
    assert found["kinds"] == [row["kind"] for row in extraction_rows("orders", 4, "dev")]
    assert (folder / "merged/model.safetensors").stat().st_size > 250e6


@pytest.mark.slow
@pytest.mark.parametrize("words", [NAMES, CITIES, ITEMS], ids=["names", "cities", "items"])
def test_the_model_can_copy_every_word_token_by_token(real_model, words):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(real_model)
    for word in " ".join(words.values()).split():
        after_blank = [token.removeprefix("Ġ") for token in tokenizer.tokenize(f"3 {word}")[1:]]
        assert after_blank == tokenizer.tokenize(f'"{word}"')[1:-1], word


def test_the_form_of_an_answer_is_told_apart_from_the_person_it_is_about(real):
    row = dict(seed=0, before=dict(greedy="1000", wrong_person=1), after=dict(greedy="1110", wrong_person=1))
    assert real.bench.kind_of_gain(row) == "form, not choice"
    said = real.bench.chosen_people(row).replace("\n", " ")
    assert re.findall(r"\d of \d", said) == ["2 of 4", "4 of 4", "1 of 2", "3 of 4"]
