"""Configs that are not TRL's: which tool a file is for, and what settings of other tools are called in TRL.

It imports nothing of TRL, so that a config of another tool is recognized at once.
"""

from collections.abc import Collection
from pathlib import Path

from grpo_core.errors import CourseError

#: What only the config of a tool has: keys with a dot between section and key, where all of one line must be there.
TOOLS = {
    "axolotl": ("base_model rl", "base_model datasets", "base_model micro_batch_size"),
    "ms-swift": ("rlhf_type", "rlhf.rlhf_type", "external_plugins", "tuner_type", "train_type model"),
    "EasyR1": ("worker algorithm.adv_estimator",),
    "verl": ("actor_rollout_ref", "algorithm.adv_estimator"),
    "LLaMA-Factory": ("stage finetuning_type",),
    "OpenRLHF": ("advantage_estimator", "n_samples_per_prompt", "micro_rollout_batch_size"),
    "NeMo RL": ("grpo.num_prompts_per_step policy", "grpo loss_fn policy"),
    "SkyRL": ("trainer.algorithm generator",),
    "prime-rl": ("orchestrator", "rollouts_per_example"),
    "AReaL": ("gconfig actor", "allocation_mode actor"),
    "ROLL": ("actor_train actor_infer",),
}
#: The tools whose settings docs/other-trainers.md has next to TRL's. EasyR1 has verl's.
MAPPED = ("axolotl", "ms-swift", "verl", "EasyR1")
#: What TRL calls the settings of other tools and of older releases.
MEANT = {
    "model_name_or_path": "base_model model model_name model_id model_path pretrained_model base_model_name pretrain",
    "dataset_name": "dataset dataset_path data_path dataset_id train_dataset train_file train_data",
    "reward_funcs": "reward_functions rewards reward_fns reward_function reward_func",
    "per_device_train_batch_size": "micro_batch_size batch_size train_batch_size per_gpu_train_batch_size "
    "per_gpu_batch_size micro_train_batch_size device_batch_size",
    "gradient_accumulation_steps": "grad_accum grad_accum_steps gradient_accumulation accumulation_steps",
    "num_generations": "group_size num_rollouts n_rollouts rollouts_per_prompt rollout_n num_samples n_samples "
    "n_samples_per_prompt num_samples_per_prompt samples_per_prompt num_completions num_return_sequences "
    "num_generations_per_prompt completions_per_prompt",
    "max_completion_length": "max_new_tokens max_response_length max_tokens max_gen_len max_generation_length "
    "generate_max_len completion_length response_length max_output_tokens",
    "beta": "kl_coef kl_coeff kl_beta kl_weight kl_loss_coef kl_penalty init_kl_coef beta_kl",
    "epsilon": "clip_range cliprange clip_eps clip_epsilon eps_clip clip_ratio clip_ratio_low epsilon_low",
    "epsilon_high": "clip_range_high clip_eps_high eps_clip_high clip_ratio_high",
    "num_iterations": "ppo_epochs inner_epochs num_inner_epochs grpo_iterations mu",
    "learning_rate": "lr actor_learning_rate",
    "max_steps": "total_steps num_steps steps train_steps training_steps num_train_steps num_training_steps",
    "num_train_epochs": "epochs num_epochs n_epochs total_epochs max_epochs",
    "max_grad_norm": "grad_clip gradient_clipping clip_grad_norm max_norm",
    "optim": "optimizer",
    "lr_scheduler_type": "lr_scheduler scheduler lr_schedule",
    "loss_type": "grpo_loss_type policy_loss loss_mode",
    "per_device_eval_batch_size": "eval_batch_size val_batch_size",
    "eval_strategy": "evaluation_strategy",
    "eval_steps": "eval_every eval_freq eval_interval test_freq",
    "save_steps": "save_every save_freq save_interval checkpoint_interval",
    "logging_steps": "log_every log_freq log_interval log_steps logging_freq",
    "output_dir": "output_path out_dir save_dir save_path ckpt_dir checkpoint_dir",
    "report_to": "logger loggers",
    "use_peft": "use_lora lora adapter",
    "lora_r": "lora_rank rank",
    "lora_target_modules": "target_modules",
    "load_in_4bit": "use_4bit load_4bit",
    "vllm_gpu_memory_utilization": "gpu_memory_utilization",
    "vllm_tensor_parallel_size": "tensor_parallel_size tensor_model_parallel_size",
    "use_liger_kernel": "use_liger_loss use_liger",
    "dtype": "torch_dtype",
}
#: What older releases of TRL had.
REMOVED = ("max_prompt_length", "warmup_ratio", "overwrite_output_dir", "vllm_device")
SYNONYMS = {name: meant for meant, names in MEANT.items() for name in names.split()}
#: The keys of open-r1's own training script, whose configs have TRL's keys otherwise.
OF_OPEN_R1 = {
    *("dataset_prompt_column", "system_prompt", "chat_template", "callbacks", "benchmarks", "cosine_min_value_wrong"),
    *("cosine_max_value_wrong", "cosine_min_value_correct", "cosine_max_value_correct", "cosine_max_len"),
    *("repetition_n_grams", "repetition_max_penalty", "code_language", "code_provider", "code_eval_test_batch_size"),
    *("parallel_code_exec_per_proc", "e2b_router_url", "morph_router_url", "wandb_run_group"),
    *("hub_model_revision", "overwrite_hub_revision", "push_to_hub_revision", "ioi_provider"),
    *("max_completion_len", "soft_punish_cache"),
}
#: The rewards in open-r1's registry, and TRL's own reward for the same purpose.
REWARDS_OF_OPEN_R1 = {
    **dict.fromkeys(("reasoning_steps", "cosine", "repetition_penalty", "length", "code", "binary_code"), ""),
    **dict.fromkeys(("ioi_code", "cf_code", "code_format", "tag_count"), ""),
    "accuracy": "accuracy_reward",
    "format": "think_format_reward",
    "soft_overlong_punishment": "get_soft_overlong_punishment",
}


def tool_of(config: dict) -> tuple[str, str]:
    """The other tool that a config is for, and the keys that show it; two empty texts for none of them.

    >>> tool_of({"base_model": "Qwen/Qwen3-0.6B", "rl": "grpo"}), tool_of({"algorithm": {"adv_estimator": "grpo"}})
    (('axolotl', 'base_model and rl'), ('verl', 'algorithm.adv_estimator'))
    >>> tool_of({"model_name_or_path": "Qwen/Qwen3-0.6B"})
    ('', '')
    """
    for tool, marks in TOOLS.items():
        for mark in marks:
            if all(_has(config, key.split(".")) for key in mark.split()):
                return tool, " and ".join(mark.split())
    return "", ""


def _has(config: object, path: list[str]) -> bool:
    """Whether there is a key in a section of a section; a name may be written with hyphens."""
    for name in path:
        names = {str(key).replace("-", "_"): key for key in config} if isinstance(config, dict) else {}
        if name not in names:
            return False
        config = config[names[name]]
    return True


def in_trl(name: str, valid: Collection[str]) -> str:
    """A name that TRL does not have, with what TRL calls it, if it has another name for it.

    >>> in_trl("kl_coef", {"beta"}), in_trl("training.lr", {"learning_rate"}), in_trl("lora.rank", {"lora_r"})
    ('kl_coef (beta in TRL)', 'training.lr (learning_rate in TRL)', 'lora.rank (lora_r in TRL)')
    """
    last = name.rpartition(".")[2]
    meant = SYNONYMS.get(name.replace(".", "_")) or SYNONYMS.get(last, "")
    if meant in valid:
        return f"{name} ({meant} in TRL)"
    return f"{name} (removed from TRL)" if last in REMOVED else name


def refuse_foreign(path: Path, config: dict) -> None:
    """Raise a `CourseError` for the config of another tool, whose keys say nothing about a run of TRL."""
    tool, marks = tool_of(config)
    if tool:
        where = "docs/other-trainers.md has each of them next to TRL's" if tool in MAPPED else "GRPOConfig has them"
        raise CourseError(
            f"{path} is a config for {tool} (it has {marks}), and this check reads those of trl grpo. To check the run "
            f"that you would do with TRL, write its settings under TRL's names into another file; {where}."
        )
