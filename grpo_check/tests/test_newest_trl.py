"""What differs between releases of TRL, in a real run: `make check-newest` runs this with the newest one."""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest
from grpo_check.replay.read import read_run
from test_check_package import ABSENT, MODEL, REWARDS, ROWS

from grpo_check import diagnose_file

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
sys.modules.update(dict.fromkeys({absent}))  # a project on plain TRL
import json
from datasets import Dataset
from grpo_check import HealthCallback
from my_rewards import right
import trl
from trl import GRPOConfig, GRPOTrainer

rows = Dataset.from_list([json.loads(line) for line in open("rows.jsonl")])
trainer = GRPOTrainer(
    model={model!r},
    reward_funcs=[right],
    args=GRPOConfig(output_dir="out", max_steps=2, logging_steps=1, save_steps=2, use_cpu=True, bf16=False, beta=0.04,
                    per_device_train_batch_size=4, num_generations=4, max_completion_length=8, report_to="none",
                    log_completions=True),
    train_dataset=rows,
)
trainer.add_callback(HealthCallback(rows.select(range(2)), every=1, correctness=["right"]))
trainer.train()
print("trained with", trl.__version__)
"""


def test_a_run_is_watched_diagnosed_and_replayed(tmp_path):
    (tmp_path / "my_rewards.py").write_text(REWARDS, encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    (tmp_path / "train.py").write_text(
        SCRIPT.replace("{model!r}", repr(MODEL)).replace("{absent}", repr(ABSENT)), encoding="utf-8"
    )
    run = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"trained with {version('trl')}" in run.stdout
    assert "What is 0 + 1?" in (tmp_path / "out" / "health" / "samples.txt").read_text(encoding="utf-8")
    log = json.loads((tmp_path / "out" / "checkpoint-2" / "trainer_state.json").read_text(encoding="utf-8"))
    wanted = {"reward", "reward_std", "frac_reward_zero_std", "kl", "entropy", "completions/clipped_ratio"}
    assert wanted <= {name for entry in log["log_history"] for name in entry}
    assert [finding.code for finding in diagnose_file(tmp_path / "out")] == ["too_short"]
    recording = read_run(tmp_path / "out")
    said = [one for step in recording.steps for group in step.groups for one in group.completions]
    assert len(said) == 8 and recording.rewards == ("right",)
    assert not any(one.text.startswith(("assistant: ", "[{")) for one in said)
