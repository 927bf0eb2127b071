"""A trainer of a tiny model, as the lessons make it, for the tests of what happens while it trains."""

from grpo_utils import load_policy, training_arguments
from grpo_utils.profiles import CPU
from grpo_utils.run.policy import keep_trainable_fp32


def tiny_trainer(folder, rewards, rows, *, family="qwen", policy_seed=0, load_in_4bit=False, callbacks=(), **arguments):
    """It trains a new adapter; ``arguments`` are those of `GRPOConfig` that differ from the profile."""
    from trl import GRPOConfig, GRPOTrainer

    how = dict(profile=CPU, backend="transformers", load_in_4bit=load_in_4bit, seed=policy_seed)
    policy, tokenizer = load_policy(CPU.models[family], **how)
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**training_arguments(CPU, output_dir=str(folder), **arguments)),
        train_dataset=rows,
        reward_funcs=rewards,
        callbacks=list(callbacks),
    )
    keep_trainable_fp32(policy)
    return trainer
