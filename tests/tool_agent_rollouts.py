"""Run in a copy of the template tool_agent: its own episodes are TRL's rollouts, token by token, masks included.

Greedily (TRL: top_k 1), so that both have to say the same; with room for all, for half of the last turn, and for no
answer of a tool. Then what stands between two turns, with chat templates of real models.
"""

from pathlib import Path

import torch
import trl
from data import load_rows
from environment import TOOLS
from generation import generate, tokens_of
from rewards import REWARDS
from tools import check_tools, template_of
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

POLICY = AutoModelForCausalLM.from_pretrained("./tiny-model", dtype=torch.float32)
ROWS = load_rows("arithmetic", "test", 40, seed=0)


def tokenizer_with(template: str = "") -> AutoTokenizer:
    """The tiny tokenizer, with another chat template if one is named."""
    tokenizer = AutoTokenizer.from_pretrained("./tiny-model")
    if template:
        tokenizer.response_template = None
        path = Path(trl.__file__).parent / "chat_templates" / f"{template}.jinja"
        tokenizer.chat_template = path.read_text(encoding="utf-8")
    check_tools(tokenizer, template or "tiny-model")
    return tokenizer


def trainer_with(tokenizer: AutoTokenizer, room: int) -> GRPOTrainer:
    """TRL's trainer, greedy, with two completions a prompt."""
    config = GRPOConfig(
        "outputs/same",
        use_cpu=True,
        bf16=False,
        report_to="none",
        top_k=1,
        num_generations=2,
        per_device_train_batch_size=80,
        max_completion_length=room,
        max_tool_calling_iterations=2,
    )
    return GRPOTrainer(POLICY, list(REWARDS), config, ROWS, processing_class=tokenizer, **TOOLS)


def compare(room: int) -> None:
    """Tokens and masks of each episode."""
    tokenizer = tokenizer_with()
    trainer = trainer_with(tokenizer, room)
    template = template_of(tokenizer, trainer.args)
    how = dict(tokens=room, turns=2, template=template, batch=40, seed=0, temperature=0.0)
    made = trainer._generate_and_score_completions([row for row in ROWS for _ in range(2)])
    cut, called = 0, 0
    for place, episode in enumerate(generate(POLICY, tokenizer, ROWS, **how)):
        prompt = made["prompt_ids"][2 * place][made["prompt_mask"][2 * place].bool()]
        kept = made["completion_mask"][2 * place].bool()
        assert prompt.tolist() == episode.prompt
        assert made["completion_ids"][2 * place][kept].tolist() == episode.tokens
        assert made["tool_mask"][2 * place][kept].tolist() == episode.own
        assert len(episode.tokens) == len(episode.own) <= room
        cut, called = cut + (len(episode.tokens) == room), called + (0 in episode.own)
    print(f"room {room}: {called} with tools, {cut} cut")


for room in (80, 52, 45):
    compare(room)
ANSWERS = [{"role": "tool", "name": "calculator", "content": text} for text in ("42", "Error: division by zero.")]
for name in ("qwen2_5", "qwen3", "qwen3_instruct_2507", "llama3_1"):
    tokenizer = tokenizer_with(name)
    trainer = trainer_with(tokenizer, 80)
    template = template_of(tokenizer, trainer.args)
    for answers in (ANSWERS[:1], ANSWERS):
        assert trainer._get_tool_suffix_ids(answers) == tokens_of(tokenizer, answers, template), name
    print(f"{name}: the same between turns")
