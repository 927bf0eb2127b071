"""What all commands of grpo-check share: exit codes, formats, and the choice of findings."""

import json
import re
import subprocess
import sys
from argparse import Namespace
from io import BytesIO, TextIOWrapper

import pytest
import replay_runs
import rule_tables
from grpo_check.__main__ import check
from grpo_check.explaining import all_rules, explain
from grpo_check.findings import Finding, Report
from grpo_check.health.rules import RULES
from grpo_check.output import fitted, show
from places import HERE, ROOT

from grpo_check import __main__

NAN = [{"step": n, "loss": float("nan"), "reward": 0.5} for n in (1, 2)]
DEAD = [
    {"step": n, "reward": 0.0, "rewards/f/mean": 0.0, "rewards/f/std": 0.0, "frac_reward_zero_std": 1.0, "loss": 0.1}
    for n in range(1, 13)
]
SHORT = [{"step": n, "reward": 0.1 * n, "loss": 0.1} for n in (1, 2)]


@pytest.fixture
def command(tmp_path, monkeypatch, grpo_check):
    """The command line in a folder with three logs."""
    monkeypatch.chdir(tmp_path)
    for name, log in {"nan": NAN, "dead": DEAD, "short": SHORT}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(log), encoding="utf-8")
    return grpo_check


def test_the_exit_code_says_whether_an_error_was_found_or_nothing_could_run(command):
    assert command("health", "short.json")[0] == 0
    assert command("health", "nan.json")[0] == 1
    code, out, err = command("health", "no_such.json")
    assert code == 2 and not out and err.startswith("Error: ") and "no_such.json" in err
    assert command("health", "nan.json", "--formt", "json")[0] == 2


@pytest.mark.parametrize("severity", ["error", "warning", "note"])
@pytest.mark.parametrize("strict", [None, True])
def test_the_exit_code_is_what_the_report_says(severity, strict, capsys):
    report = Report((Finding("no_pad", severity, "there is no pad_token."),))
    arguments = dict(run=lambda given: report, check="preflight", select=None, ignore=None, strict=strict)
    ok = severity == "note" or (severity == "warning" and not strict)
    assert check(Namespace(**arguments, format="json")) == (not ok)
    assert json.loads(capsys.readouterr().out)["ok"] is ok
    assert check(Namespace(**arguments, format="text")) == (not ok)
    assert capsys.readouterr().out.splitlines()[-1].startswith("ok: " if ok else "NOT OK: ")


def test_json_has_every_finding_whole(command):
    code, out, _ = command("health", "nan.json", "--format", "json")
    said = json.loads(out)
    assert code == 1 and said["check"] == "health" and said["ok"] is False
    (finding,) = said["findings"]
    assert finding["code"] == "nan" and finding["severity"] == "error" and finding["fixes"]


def test_github_gets_one_annotation_per_finding(command):
    _, out, _ = command("health", "nan.json", "--format", "github")
    (line,) = out.splitlines()
    assert line.startswith("::error title=grpo-check health (nan)::") and "%0AWhy: " in line


def test_a_name_that_the_terminal_cannot_print_is_escaped(command, tmp_path, monkeypatch):
    replay_runs.write_run(tmp_path / "опыт", steps=1)
    terminal = TextIOWrapper(BytesIO(), encoding="cp1252", write_through=True)
    monkeypatch.setattr("sys.stdout", terminal)
    assert command("replay", "опыт")[0] == 0
    assert rb"written: \u043e\u043f" in terminal.buffer.getvalue()


@pytest.mark.parametrize("chosen", [["--ignore", "nan"], ["--select", "leak,no_eos"]])
def test_what_is_left_out_neither_shows_nor_fails(command, chosen):
    code, out, _ = command("health", "nan.json", *chosen)
    assert code == 0 and "nan:" not in out


def test_a_code_that_the_command_line_selects_is_shown_whatever_pyproject_ignores(command, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.grpo_check]\nignore = ["nan"]\n')
    assert command("health", "nan.json", "--select", "nan")[0] == 1


def test_an_error_of_the_program_is_not_an_error_that_was_found(monkeypatch, grpo_check):
    def broken(arguments: Namespace) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(__main__, "parse", lambda: Namespace(command=broken))
    code, _, err = grpo_check()
    assert code == 2 and "ZeroDivisionError" in err


def test_an_annotation_names_the_reward_and_repeats_nothing():
    finding = Finding("dead", "error", "first line\nsecond line", "It is dead.", ("Fix it.",), subject="mine")
    said = show(Report((finding,)), "probe", "github")
    assert "::mine: first line%0Asecond line%0AWhy: It is dead.%0ADo:  Fix it." in said


def test_pyproject_has_defaults_which_the_command_line_replaces(command, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.grpo_check]\nignore = ["nan"]\nformat = "json"\n')
    code, out, _ = command("health", "nan.json")
    assert code == 0 and json.loads(out)["findings"] == []
    assert command("health", "nan.json", "--ignore", "leak", "--format", "text")[0] == 1


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('ignored = ["nan"]', "Did you mean 'ignore'?"),
        ('ignore = "nan"', 'ignore = ["pad_is_eos"]'),
        ('format = "xml"', 'format = "json"'),
        ('ignore = ["nann"]', "Did you mean 'nan'?"),
        ("ignore = [", "pyproject.toml"),
        ('select = [["nan"]]', "is not the code of a finding"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(command, tmp_path, table, said):
    (tmp_path / "pyproject.toml").write_text(f"[tool.grpo_check]\n{table}\n")
    code, out, err = command("health", "nan.json")
    assert code == 2 and not out and said in err


def test_a_code_is_explained_or_the_nearest_one_named(command):
    code, out, _ = command("explain", "leak", "no_eos")
    assert code == 0 and "held-out" in out and "of preflight" in out and "of health" in out
    code, _, err = command("explain", "lek")
    assert code == 2 and "Did you mean 'leak'?" in err
    code, out, _ = command("explain")
    assert code == 0 and all(f"{check}:\n" in out for check in ("probe", "attack", "preflight", "pilot", "health"))


def test_a_line_that_is_too_long_for_the_terminal_goes_on_below_its_text():
    line = "error   leak: " + "word " * 30
    lines = fitted(line.strip(), 60)
    assert all(len(one) <= 60 for one in lines) and " ".join(one.strip() for one in lines) == line.strip()
    assert all(one.startswith("        word") for one in lines[1:])


def test_text_leads_a_shell_user_to_explain(capsys):
    report = Report((Finding("leak", "error", "9 prompts leak.", link="grpo-check explain leak"),))
    assert "More: grpo-check explain leak" in show(report, "preflight", "text")


def test_health_loads_neither_torch_nor_transformers(command, tmp_path):
    code = "import sys; sys.argv[1:] = ['health', 'short.json']\n"
    code += "from grpo_check.__main__ import check, main\ntry: main()\nexcept SystemExit: pass\n"
    code += "print(sorted({'torch', 'transformers', 'trl', 'datasets'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_the_tables_of_codes_are_the_rules():
    pages = {path.name: path.read_text(encoding="utf-8") for path in (*ROOT.glob("docs/*.md"), *HERE.glob("docs/*.md"))}
    stale = [name for name, page in pages.items() if rule_tables.with_tables(page) != page]
    assert not stale, "run: python scripts/rule_tables.py"
    assert sum(page.count(rule_tables.END) for page in pages.values()) == 6  # and one by vllm_versions.py


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_page_of_metrics_has_those_of_the_rule(rule):
    page = (ROOT / "grpo_check" / "docs" / "checks.md").read_text(encoding="utf-8")
    missing = [metric for metric in rule_tables.metrics_in(rule.example) if f"\n| `{metric}` |" not in page]
    assert not missing, "add rows for them to grpo_check/docs/checks.md"


def test_the_rules_that_contributing_shows_are_in_the_files_that_it_names():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    added = re.findall(r"^\+\+\+ b/(\S+)\n((?:\+.*\n)+)", page, re.MULTILINE)
    files = {path: (ROOT / path).read_text(encoding="utf-8").splitlines() for path, _ in added}
    assert len(files) == 3
    assert not [line for path, lines in added for line in lines.splitlines() if line[1:] not in files[path]]


def test_a_code_that_two_checks_share_means_one_thing():
    meanings = {}
    for rule in all_rules():
        meanings.setdefault(rule.code, set()).add(rule.meaning)
    assert not {code: said for code, said in meanings.items() if len(said) > 1}


def test_reasons_and_fixes_are_whole_sentences_and_name_the_command():
    said = [(rule.code, text) for rule in all_rules() for text in (rule.why, *rule.fixes) if text]
    assert not [one for one in said if not one[1].endswith((".", "?")) or "-m grpo_check" in one[1]]


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_code_has_a_page_that_says_why_and_what_to_do(rule):
    assert rule.meaning and rule.fixes and rule.details
    assert rule.why or rule.code in ("go", "stopped", "healthy")  # none of them is a fault of the run
    page = explain(rule.code)
    assert page.startswith(f"{rule.code}: {rule.meaning}") and "<" not in page.splitlines()[0]


#: What a stranger does not have.
OF_THE_COURSE = re.compile(r"chat_prompt|math_rewards|drop_long|completion_text|\blesson|\bthe course|grpo_utils")


def test_no_advice_names_what_only_the_course_has():
    said = {rule.code: " ".join([rule.meaning, rule.why, rule.details, *rule.fixes]) for rule in all_rules()}
    found = {code: OF_THE_COURSE.findall(text) for code, text in said.items()}
    assert len(found) > 80 and {code: words for code, words in found.items() if words} == {}
