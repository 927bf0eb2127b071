"""The settings that a lesson writes out are those of the CPU profile, but for what it changes on purpose."""

import re
import tempfile
from types import SimpleNamespace

import nbformat
import pytest
from course import ROOT
from lessons import NO_EFFECT, code_of, defined_by
from trl import GRPOConfig

from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU

pytestmark = pytest.mark.slow
WEIGHTS = [2.0, 0.5, 0.5]
GIVEN = dict(run=SimpleNamespace(steps=20, profile=CPU), SEED=0, factors=WEIGHTS, weights=WEIGHTS)
GIVEN |= dict(GRPOConfig=GRPOConfig, tempfile=tempfile, Arithmetic=object)
#: By lesson: a line of the cell with its settings, their name, and what the lesson changes on purpose.
LESSONS = {
    "00_start": ("config = GRPOConfig(", "config", set()),
    "02_rewards": ("def settings(", "settings", set()),
    "04_reading_a_run": ("BASE = dict(", "BASE", {"lr_scheduler_type"}),
    "09_stages": ("SHARED = dict(", "SHARED", {"lr_scheduler_type", "save_strategy"}),
    "06_evaluation": ("SETTINGS = dict(", "SETTINGS", set()),
    "12_own_data_and_judge": ("GRPO = dict(", "GRPO", {"optim"}),  # TRL's own, the fused form of the same optimizer
    "13_tools": (
        "SETTINGS = dict(",
        "SETTINGS",
        {"max_completion_length", "max_tool_calling_iterations", "num_generations_eval"},
    ),
}


def config_of(found: object, **given: object) -> dict:
    """All arguments of TRL from what a lesson defines: a config, a function that makes one, or a dictionary."""
    if callable(found):
        found = found(given["max_steps"], given["reward_weights"])
    return (found if isinstance(found, GRPOConfig) else GRPOConfig(**given | found)).to_dict()


@pytest.mark.parametrize("lesson", LESSONS)
def test_only_what_is_meant_differs_from_the_profile(lesson, tmp_path):
    line, name, changed = LESSONS[lesson]
    names = defined_by(nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4), line, **GIVEN)
    given = dict(output_dir=str(tmp_path), max_steps=20, reward_weights=WEIGHTS, seed=0)
    ours = config_of(names[name], **given)
    profile = GRPOConfig(**training_arguments(CPU, **given)).to_dict()
    assert {name for name in profile if ours[name] != profile[name]} - NO_EFFECT == changed


def test_every_adapter_has_the_rank_of_the_profile():
    books = [nbformat.read(path, as_version=4) for path in (ROOT / "notebooks").glob("*.ipynb")]
    found = re.findall(r"\br=(\d+), lora_alpha=(\d+)", "\n".join(cell for book in books for cell in code_of(book)))
    assert len(found) > 3 and set(found) == {(str(CPU.lora_rank), str(CPU.lora_alpha))}
