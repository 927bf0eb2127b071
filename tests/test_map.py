"""docs/map.md: the classes and settings that it names are in the installed TRL.

TRL is read as text, because its import takes ten seconds.
"""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from course import ROOT

PAGE = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
TRL = Path(find_spec("trl").origin).parent
CLASSES = sorted(set(re.findall(r"`trl\.([\w.]*?)\.?(\w+(?:Trainer|Spec))`", PAGE)))


@pytest.mark.parametrize(("module", "name"), CLASSES, ids=lambda part: part)
def test_every_class_is_where_the_page_says(module, name):
    source = [path.read_text(encoding="utf-8") for path in (TRL / module.replace(".", "/")).rglob("*.py")]
    assert re.search(rf"^class {name}\b", "\n".join(source), flags=re.MULTILINE)


@pytest.mark.parametrize("heading", ["Losses and stability", "Off-policy and stale samples"])
def test_every_setting_in_a_table_is_one_of_grpo_config(heading):
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = "\n".join(line for line in part.splitlines() if line.startswith("|"))
    config = (TRL / "trainer" / "grpo_config.py").read_text(encoding="utf-8")
    names = set(re.findall(r"`(\w+)(?:=[^`]*)?`", rows)) - {"GRPOConfig"}
    assert names and [name for name in names if f"\n    {name}: " not in config] == []
