"""docs/settings.md: its names exist, its values are those of the profiles, and its figures are those measured."""

import json
import re
from dataclasses import fields

import bench_settings
import pytest
import yaml
from course import ROOT

from grpo_utils.arguments import training_arguments
from grpo_utils.models import lora_arguments
from grpo_utils.profiles import PROFILES

PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
STORED = json.loads(bench_settings.STORED.read_text(encoding="utf-8"))


def table(heading: str, number: int = 0) -> list[list[str]]:
    """The rows of a section's table, without its head."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", part, flags=re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in tables[number].splitlines()[2:]]


def arguments_of(name: str) -> dict:
    return lora_arguments(PROFILES[name]) | training_arguments(PROFILES[name])


def arguments_of_the_real_model() -> dict:
    """Its own settings, and TRL's defaults for those that it leaves open."""
    from trl import GRPOConfig

    own = yaml.safe_load((ROOT / "grpo_utils/real/project/config.yaml").read_text(encoding="utf-8"))
    return vars(GRPOConfig(use_cpu=True, bf16=False)) | own | {"r": own["lora_r"]}


def test_the_values_of_each_profile_are_those_of_the_code():
    known = {name: arguments_of(name) for name in PROFILES}
    columns = {"cpu": known["cpu"], "real model": arguments_of_the_real_model()} | known
    rows = table("Values by profile")
    assert rows
    for setting, *values in rows:
        assert values == [str(column[setting.strip("`")]) for column in columns.values()], setting
    for setting, value in table("Values by profile", 1):
        name = setting.strip("`")
        assert {str(column[name]) for column in columns.values()} == {value}, setting


@pytest.mark.parametrize("heading", ["Sampling", "Batch and steps", "Learning", "Adapter"])
def test_every_setting_is_an_argument_of_grpo_config_or_lora_config(heading):
    from peft import LoraConfig
    from trl import GRPOConfig

    names = {name for row in table(heading) for name in re.findall(r"`(\w+)`", row[0])}
    assert names and names <= {field.name for config in (GRPOConfig, LoraConfig) for field in fields(config)}


def config_of(batch: int, steps: int, group: int):
    from trl import GRPOConfig

    sizes = dict(per_device_train_batch_size=batch, steps_per_generation=steps, num_generations=group)
    return GRPOConfig(**sizes, use_cpu=True, bf16=False)


def test_the_table_of_batches_is_what_trl_says():
    for batch, uses, group, result in table("Batch and steps", 1):
        sizes = int(batch), int(uses), int(group)
        if result.startswith("an error"):
            with pytest.raises(ValueError):
                config_of(*sizes)
        else:
            config_of(*sizes)
            assert result.split()[0] == str(sizes[0] * sizes[1] // sizes[2])


def test_the_measured_half_is_written_from_what_is_stored():
    assert bench_settings.measured(STORED) == bench_settings.MARK + PAGE.partition(bench_settings.MARK)[2]


@pytest.mark.parametrize("name", bench_settings.SETTINGS)
def test_each_figure_is_drawn_from_what_is_stored(name):
    setting, results = bench_settings.SETTINGS[name], STORED["results"][name]
    assert [found["value"] for found in results] == [setting.default, *setting.others]
    assert all(len(found["accuracy"]) == len(bench_settings.SEEDS) for found in results)
    assert bench_settings.alt_text(name, results) in bench_settings.figure_of(name).read_text(encoding="utf-8")
    assert f"](#{name})" in PAGE and f"\n### {name}\n" in PAGE


def test_the_measurements_show_what_the_page_says_of_them():
    def metric(name: str, value: float) -> float:
        [found] = [found for found in STORED["results"][name] if found["value"] == value]
        return sum(found["metric"]) / len(found["metric"])

    assert metric("num_generations", 4) > metric("num_generations", 8) > metric("num_generations", 16)
    assert metric("temperature", 0.7) > metric("temperature", 1.0) > metric("temperature", 1.3)
    assert metric("num_iterations", 1) == 0 < metric("num_iterations", 2)
    assert metric("max_completion_length", 20) > 0.1 > metric("max_completion_length", 32)
    assert STORED["results"]["beta"][0]["metric"] == []
