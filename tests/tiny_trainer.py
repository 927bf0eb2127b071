"""A trainer of a tiny model, as the lessons make it, for the tests of what happens while it trains."""

from grpo_core.training.policy import keep_trainable_fp32

from grpo_utils import load_policy, load_rows, math_rewards
from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU


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


def healthy_trainer(folder, family="qwen", seed=0, callbacks=(), functions=(), **changes):
    """The healthy run of lesson 04, with changes."""
    from transformers.trainer_callback import PrinterCallback

    rewards, weights = math_rewards()
    usual = dict(learning_rate=1e-3, lr_scheduler_type="constant", seed=seed, reward_weights=weights)
    how = dict(family=family, policy_seed=seed, callbacks=callbacks)
    rows = load_rows("addition", "train", 2000, seed)
    trainer = tiny_trainer(folder, list(functions) or rewards, rows, **how, **usual | changes)
    trainer.remove_callback(PrinterCallback)
    return trainer
