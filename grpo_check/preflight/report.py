"""The codes of a preflight, and its printed report."""

from dataclasses import dataclass, field

from ..findings import Finding, Report
from .estimate import Estimate

#: Every code with its severity and its meaning. An error means that the run would fail or be wasted.
CODES = {
    "unknown_argument": ("error", "a name that GRPOConfig does not know, such as a typo or a removed argument"),
    "wrong_type": ("error", "a value of the wrong type, such as a number written as a string"),
    "text_number": ("warning", "a number that YAML reads as a string"),
    "out_of_range": ("error", "a number outside the valid range"),
    "unknown_choice": ("error", "a value that is not one of the argument's choices"),
    "steps_ignored": ("warning", "max_steps is 0 or below, so the number of epochs applies"),
    "batch": ("error", "the completions sampled at once are not a multiple of num_generations"),
    "no_eval_rows": ("error", "evaluation is on, but there are no held-out rows"),
    "best_by_loss": ("warning", "the best checkpoint is chosen by the loss"),
    "refused": ("error", "GRPOConfig itself rejects the arguments"),
    "temperature_zero": ("error", "greedy sampling, which makes all completions of a group equal"),
    "learning_rate": ("warning", "a learning rate far from the usual values for GRPO"),
    "loss_incomplete": ("warning", "a loss without the setting that its paper uses"),
    "small_groups": ("warning", "groups so small that many of them may tie"),
    "truncated_masked": ("warning", "truncated completions are masked although completions are short"),
    "report_to": ("error", "a logger that is unknown or not installed"),
    "no_rewards": ("error", "no reward function is given"),
    "reward_weights": ("error", "the number of weights differs from the number of rewards, or all weights are zero"),
    "not_a_reward": ("error", "a reward that TRL cannot call"),
    "reward_takes_no_more": ("error", "a reward without **kwargs, to which TRL passes extra arguments"),
    "missing_column": ("error", "a reward parameter that matches no dataset column"),
    "reward_broken": ("error", "the reward lab found an error"),
    "reward_weak": ("warning", "the reward lab found a warning"),
    "no_rows": ("error", "a dataset without rows"),
    "too_few_rows": ("error", "fewer rows than one step needs, so the run ends at step 0"),
    "no_prompt": ("error", "a row without a prompt"),
    "string_prompt": ("error", "plain text prompts for a chat model (a warning if it may be a base model)"),
    "bad_prompt": ("error", "a prompt that is neither text nor a list of messages"),
    "bad_answer": ("error", "a missing or empty gold answer that a reward reads"),
    "answer_not_text": ("warning", "a gold answer that is a number instead of text"),
    "gold_in_prompt": ("warning", "nearly all prompts contain their own gold answer as a word"),
    "duplicates": ("warning", "training rows with the same prompt and answer"),
    "leak": ("error", "held-out prompts that are also in the training rows"),
    "no_chat_template": ("error", "message prompts, but a tokenizer without a chat template"),
    "no_eos": ("error", "a tokenizer without an end-of-sequence token"),
    "no_pad": ("warning", "a tokenizer without a padding token"),
    "pad_is_eos": ("warning", "the padding token is the end-of-sequence token"),
    "template_without_eos": ("error", "the chat template ends a turn with a token that does not stop generation"),
    "template_fails": ("error", "a chat template that raises an error or drops a message"),
    "prefilled_think": (
        "error",
        "the prompt already has a tag that a reward expects in the completion (a warning if no reward surely does)",
    ),
    "short_thoughts": ("warning", "thinking is on, and the completion limit ends most thoughts before the answer"),
    "tokenizer_mismatch": ("error", "the rows use a token that the model does not have"),
    "prompt_too_long": ("error", "prompt and completion together exceed the model's context"),
    "long_prompts": ("warning", "prompts longer than the limit that you chose"),
    "short_completions": ("warning", "the completion limit is too short for the requested format"),
    "model_missing": ("error", "a model that cannot be loaded"),
    "bf16_gpu": ("error", "bf16 on a GPU that does not support it"),
    "fp16_full": ("error", "full fine-tuning of fp16 weights with fp16=True"),
    "fp16_cpu": ("warning", "fp16 on a CPU, which is slow and loses small gradients"),
    "bf16_cpu": ("warning", "bf16 on a CPU, where results differ between machines"),
    "no_gpu": ("error", "arguments for a GPU on a machine without one"),
    "gemma_fp16": ("error", "a Gemma model in fp16, which overflows"),
    "flash_attention": ("error", "FlashAttention 2 on a machine that cannot run it"),
    "vllm": ("error", "vLLM on a machine that cannot run it"),
    "vllm_t4": ("warning", "vLLM on a GPU on which it sometimes fails"),
    "four_bit_full": ("error", "full fine-tuning of 4-bit weights"),
    "peft_off": ("warning", "adapter settings without an adapter"),
    "gpu_optimizer": ("warning", "an optimizer for GPUs, on a CPU"),
    "memory": ("error", "the estimated memory far exceeds the available memory"),
    "memory_tight": ("warning", "the estimated memory is close to the available memory"),
}


def finding(code: str, what: str, why: str, *fixes: str, severity: str = "") -> Finding:
    """A `Finding` with the severity of its code, unless another one is given."""
    return Finding(code, severity or CODES[code][0], what, why, fixes)


@dataclass(frozen=True, repr=False)
class PreflightReport(Report):
    """The result of `preflight`.

    ``ok`` says that no error was found; ``skipped`` says where none was looked for.

    Attributes:
        findings: all findings, errors first.
        estimate: memory and minutes, or None if too little was given.
        skipped: what was not checked, and why.
        notes: useful facts that are neither errors nor warnings.
    """

    estimate: Estimate | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The findings, the estimate, the notes, and what was skipped."""
        estimate = [str(self.estimate)] if self.estimate else []
        notes = [f"note    {note}" for note in self.notes]
        skipped = [f"skipped {what}: {why}" for what, why in self.skipped.items()]
        return [*super().lines(), *estimate, *notes, *skipped]

    def last_line(self) -> str:
        """The verdict. It is "ok" only if nothing was skipped."""
        if not self.ok or not self.skipped:
            return super().last_line()
        return f"{self._count('error')}, {self._count('warning')}; not checked: {', '.join(self.skipped)}"
