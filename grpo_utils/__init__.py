"""Small helpers that the lessons share. ``import grpo_utils`` loads no torch and is instant."""

from grpo_core.lazy import lazy_imports  # isort: skip  (first: it keeps your random.py from replacing Python's)

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # each name is imported when it is first used
    from grpo_core.errors import CourseError
    from grpo_core.rewards import (
        completion_text,
        correctness_reward,
        extract_answer,
        incremental_format_reward,
        is_strictly_right,
        math_rewards,
        same_answer,
    )
    from grpo_core.tables import read_table
    from grpo_core.training.checkpoints import checkpoint_problem, newest_checkpoint
    from grpo_core.training.generating import generate
    from grpo_core.training.resuming import train_or_resume
    from grpo_core.training.time_limit import TimeLimit

    from .arguments import other_arguments
    from .data.filters import drop_long_prompts, drop_tied
    from .data.prompts import chat_prompt
    from .data.rows import check_rows, rows_from
    from .data.sources import load_rows
    from .data.splits import find_twins
    from .evaluation.comparing import compare, compare_seeds
    from .evaluation.elsewhere import other_tasks
    from .evaluation.judging import evaluate, evaluate_samples, generate_samples, pass_rates
    from .evaluation.statistics import paired_change
    from .exercises import check_exercise, compare_prediction
    from .export.adapters import save_adapter
    from .export.cards import write_card
    from .export.merging import check_merged
    from .export.ollama import ollama_template
    from .export.publishing import push
    from .export.server import served
    from .lesson import report_merged, report_run, setup, setup_real, setup_tiny
    from .models import load_policy, model_path
    from .plots import (
        diagram,
        logged,
        show,
        show_changes,
        show_differences,
        show_pass_at_k,
        show_points,
        show_reward_and_truth,
        show_rewards,
        show_run_curves,
        show_shares,
        show_tokens,
    )
    from .progress import show_progress

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
