"""Check that Unsloth's GRPOConfig keeps the values of profiles and templates; print every changed value, and fail.

GPU_PATH_CARD=a100 python configs.py
"""

import os
import sys
from pathlib import Path

import start  # noqa: F401  before TRL
import yaml
from grpo_run.start import parse
from trl import GRPOConfig

from grpo_utils.arguments import training_arguments
from grpo_utils.models import TINY_MODELS
from grpo_utils.profiles import PROFILES

os.environ["HF_HUB_OFFLINE"] = "0"  # only settings are read; the models of a GPU are not here
TEMPLATES = Path(__file__).parent.parent.parent / "templates"

#: TRL stores these in another format.
NOT_ASKED = {"report_to", "reward_weights"}


def changed(asked: dict, config: GRPOConfig) -> dict:
    """The values that changed, as (wanted, actual)."""
    given = config.to_dict()
    names = [name for name in asked if name in given and name not in NOT_ASKED]
    return {name: (asked[name], given[name]) for name in names if text(asked[name]) != text(given[name])}


def text(value: object) -> str:
    """A setting as text, in which 2.0e-3, "0.002" and 0.002 are equal."""
    try:
        return str(float(value))
    except (TypeError, ValueError):
        return str(value)


def main() -> int:
    found = {}
    for profile in PROFILES.values():
        if profile.name != "cpu":
            asked = training_arguments(profile, output_dir="outputs")
            found[profile.name] = changed(asked, GRPOConfig(**asked))
    for path in sorted([*TEMPLATES.glob("*/config*.yaml"), *TEMPLATES.glob("*/configs/*.yaml")]):
        asked = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not asked.get("use_cpu"):
            here = ["--model_name_or_path", str(TINY_MODELS / "tiny-qwen3")]  # the model of config.small.yaml is not
            found[str(path.relative_to(TEMPLATES))] = changed(asked, parse(["--config", str(path), *here]).training)
    for name, values in found.items():
        print(f"{name}: {values or 'as asked'}")
    return int(any(found.values()) or len(found) < 12)


if __name__ == "__main__":
    sys.exit(main())
