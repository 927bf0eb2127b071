"""Small helpers that the lessons share. ``import grpo_utils`` loads no torch and is instant."""

import sys as _sys
from types import ModuleType as _Module

if _sys.argv[:1] == ["-m"] and not _sys.flags.safe_path:
    # `python -m grpo_utils` puts the current folder first: a random.py there would replace Python's own.
    _sys.path.append(_sys.path.pop(0))

from .data import (
    SYSTEM_PROMPT,
    RowsReport,
    Twin,
    addition_rows,
    chat_prompt,
    check_rows,
    drop_long_prompts,
    drop_tied,
    encode_prompts,
    find_twins,
    gsm8k_answer,
    gsm8k_rows,
    is_held_out,
    load_rows,
    numbers_key,
    plain_prompt,
    prompt_key,
    prompt_lengths,
    read_gsm8k,
    read_table,
    render_prompt,
    rows_from,
    split_rows,
)
from .errors import CourseError, did_you_mean
from .evaluation import (
    Change,
    Comparison,
    Estimate,
    Evaluation,
    Rate,
    Samples,
    SeedsComparison,
    before_after,
    compare,
    compare_seeds,
    evaluate,
    evaluate_samples,
    generate,
    generate_samples,
    judge,
    judge_samples,
    majority_right,
    majority_vote,
    mcnemar_p_value,
    mean_interval,
    p_text,
    paired_change,
    paired_interval,
    pass_at_k,
    pass_rates,
    shown,
    side_by_side,
    sign_test,
    split_gain,
    t_interval,
    verdict,
    wilson_interval,
)
from .exercises import check_exercise
from .export import (
    Merge,
    ask_server,
    convert_to_gguf,
    export_merged,
    gguf_command,
    logits,
    merge_adapter,
    merge_into_4bit,
    model_card,
    modelfile,
    ollama_template,
    public_name,
    push,
    save_adapter,
    save_merged,
    served,
    server_command,
    vllm_command,
    write_card,
)
from .install import check_gpu, check_versions
from .models import (
    LORA_TARGETS,
    check_model,
    choose_model,
    fit_model,
    gradient_checkpointing,
    is_base_model,
    load_4bit_base,
    load_policy,
    lora_arguments,
    model_path,
    torch_dtype,
)
from .plots import (
    change_chart,
    difference_chart,
    form_and_answers,
    length_histogram,
    logged,
    pass_at_k_curve,
    pass_rate_bars,
    reward_and_truth,
    reward_curve,
    run_curves,
    show,
    weight_curve,
)
from .profiles import (
    BACKENDS,
    FAMILIES,
    PROFILES,
    Gpu,
    Profile,
    check_choice,
    check_count,
    choose_profile,
    find_gpus,
    find_profile,
    prepare_machine,
)
from .rewards import (
    TAGS,
    AdaptiveReward,
    AnswerReward,
    RewardSet,
    adaptive_weights,
    as_chat,
    choice_reward,
    completion_text,
    correctness_reward,
    count_placed_tags,
    exact_reward,
    extract_after_hashes,
    extract_after_thinking,
    extract_all,
    extract_answer,
    extract_boxed,
    fuzzy_reward,
    group_advantages,
    incremental_format_reward,
    is_expression,
    is_strictly_right,
    json_reward,
    math_rewards,
    parse_choice,
    parse_json,
    parse_number,
    reward_name,
    same_answer,
    same_choice,
    same_expression,
    same_fact,
    same_json,
    same_number,
    same_text,
    split_form,
    split_thinking,
    strict_format_reward,
    think_format_reward,
    weighted_sum,
)
from .runs import (
    processor_seconds,
    read_report,
    reward_settings,
    seconds_since_start,
    start_run,
    versions,
    write_report,
)
from .training import (
    Stage,
    check_batch,
    check_names,
    check_report_to,
    check_save_steps,
    check_stages,
    checkpoint_problem,
    checkpoint_step,
    keep_trainable_fp32,
    load_adapter,
    newest_checkpoint,
    run_stages,
    train_or_resume,
    training_arguments,
)

__version__ = "0.1.0"

_LAZY = {"ProgressBar": "progress", "show_progress": "progress"}

_EAGER = {name for name, value in globals().items() if not (name.startswith("_") or isinstance(value, _Module))}
__all__ = sorted(_EAGER | set(_LAZY))


def __getattr__(name: str) -> object:
    """Reach the names whose module imports transformers only when they are asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'grpo_utils' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
