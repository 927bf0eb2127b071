"""docs/claims.md: the names that it says do not exist are not in the installed TRL."""

import re
from importlib.util import find_spec
from pathlib import Path

from course import ROOT

PAGE = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
TRL = Path(find_spec("trl").origin).parent


def test_the_names_that_do_not_exist_are_in_no_trainer_of_grpo():
    part = re.search(r"\n## Names that do not exist\n(.+?)`grpo-check", PAGE, flags=re.DOTALL)[1]
    named = {name.split(".")[-1] for name in re.findall(r"`([\w./]+)`", re.sub(r"\(it is .*?\)|\(`.*?`\)", "", part))}
    trainer = "".join(
        (TRL / "trainer" / f"grpo_{name}.py").read_text(encoding="utf-8") for name in ("config", "trainer")
    )
    assert len(named) >= 5 and not [name for name in named if re.search(rf"\b{name}\b", trainer)]
