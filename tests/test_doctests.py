"""The examples in scripts, experiments and templates: they are in no package, so pytest does not collect them."""

import doctest

import pytest
from course import ROOT
from template_projects import imported

from grpo_utils.project import template_names

pytestmark = pytest.mark.slow  # bench_losses needs torch
TEMPLATES = ROOT / "templates"
FILES = [(path.parent, path.stem, path) for name in ("scripts", "experiments") for path in (ROOT / name).glob("*.py")]
FILES += [(TEMPLATES / name, path.stem, path) for name in template_names() for path in (TEMPLATES / name).glob("*.py")]
MODULES = sorted((folder, name) for folder, name, path in FILES if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("folder", "name"), MODULES, ids=[f"{folder.name}-{name}" for folder, name in MODULES])
def test_the_examples_in_a_file_say_what_comes_out(folder, name):
    with imported(folder, name) as [module]:
        failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed
