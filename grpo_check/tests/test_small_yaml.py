"""A YAML file that is made to be huge is rejected at once, and aliases in a config that a person wrote are read."""

import time
from itertools import pairwise

import pytest
import yaml
from grpo_core.training import small_yaml
from grpo_core.training.small_yaml import load_yaml

NAMES = [f"level_{n}" for n in range(14)]
DOUBLING = "level_0: &level_0 [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 8)}]\n" for before, name in pairwise(NAMES)
)
HUGE = {
    "aliases of aliases": DOUBLING,
    "a list in itself": "rows: &rows [*rows]",
    "brackets": "rows: " + "[" * 20_000,
    "closed brackets": "rows: " + "[" * 5_000 + "]" * 5_000,
    "dashes": "- " * 20_000,
    "mappings": "{a: " * 3_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_a_file_that_is_made_to_be_huge_is_rejected_at_once(text, tmp_path):
    (tmp_path / "a.yaml").write_text(text)
    started = time.perf_counter()
    with pytest.raises(yaml.YAMLError):
        load_yaml(tmp_path / "a.yaml")
    assert time.perf_counter() - started < 10


def test_a_file_that_is_too_long_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(small_yaml, "MOST_BYTES", 10)
    (tmp_path / "a.yaml").write_text("learning_rate: 1.0e-5")
    with pytest.raises(yaml.YAMLError, match="more than 10 bytes"):
        load_yaml(tmp_path / "a.yaml")


def test_aliases_of_a_person_are_read(tmp_path):
    (tmp_path / "a.yaml").write_text("first: &same {beta: 0, seed: 1}\nsecond: {<<: *same, seed: 2}\nthird: *same\n")
    same = {"beta": 0, "seed": 1}
    assert load_yaml(tmp_path / "a.yaml") == {"first": same, "second": {"beta": 0, "seed": 2}, "third": same}
