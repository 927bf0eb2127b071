"""SKILL.md, which guides an agent: every command in it works as typed, and they end in a model that improved."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from course import ROOT
from template_projects import ALONE, check_report

SKILL = (ROOT / "SKILL.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", SKILL, re.DOTALL) for line in block.splitlines()]


def test_it_has_the_fields_of_a_skill_and_names_every_template():
    name, description = re.match(r"---\nname: ([a-z-]+)\ndescription: (.+)\n---\n", SKILL).groups()
    assert len(name) <= 64 and len(description) <= 1024 and len(SKILL.splitlines()) <= 150
    templates = {path.parent.name for path in (ROOT / "templates").glob("*/train.py")}
    named = set(re.findall(r"`(\w+)`", SKILL[SKILL.index("| task | template |") : SKILL.index("```bash")]))
    assert named == templates - {"minimal"}


@pytest.mark.slow
def test_its_commands_take_a_project_from_a_template_to_a_model_that_improved(tmp_path):
    folder = tmp_path
    environment = ALONE | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    for command in COMMANDS:
        if command.startswith("cd "):
            folder /= command.removeprefix("cd ")
            continue
        run = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
        )
        assert run.returncode == 0, command + run.stdout[-2000:] + run.stderr[-2000:]
    report = check_report(folder / "outputs" / "basic" / "report.json")
    assert report["before"]["accuracy_ci95"][1] < report["after"]["accuracy_ci95"][0] and report["p_value"] < 1e-6
    assert json.loads((folder / "outputs/basic/merged/config.json").read_text())["architectures"]
    assert run.stdout.strip()  # the answer of the merged model
