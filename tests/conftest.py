"""What the tests of the lessons share, and which tests go first."""

from pathlib import Path

import nbformat
import pytest
from lessons import run_with_nbval, said

from grpo_utils.__main__ import read_parameters

#: Programs that tests start in another folder; collecting them for doctests would run them here.
collect_ignore = ["fsdp_on_cpu.py", "tool_agent_rollouts.py"]


@pytest.fixture(scope="module")
def book(request) -> nbformat.NotebookNode:
    """The committed notebook that a file of tests names as ``LESSON``."""
    return nbformat.read(request.module.LESSON, as_version=4)


@pytest.fixture(scope="module")
def printed(book) -> str:
    """All that this notebook printed."""
    return said(book)


@pytest.fixture(scope="module")
def committed(request, tmp_path_factory) -> Path:
    """The output folder of the notebook that a file of tests names, after nbval ran it from the first cell on."""
    folder = tmp_path_factory.mktemp("nbval")
    run_with_nbval(request.module.LESSON, folder)
    return folder / read_parameters(request.module.LESSON, [])["OUTPUT_DIR"]
