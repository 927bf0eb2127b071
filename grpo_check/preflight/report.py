"""Every code of a preflight, and the report as a page to read."""

from dataclasses import dataclass, field

from ..findings import Finding, Report
from .estimate import Estimate

#: Every code, how severe it is, and what it means. An error is a run that would fail or be wasted.
CODES = {
    "unknown_argument": ("error", "a name that GRPOConfig does not know, misspelled or removed"),
    "wrong_type": ("error", "a value of another type than the argument has, such as a number that is a text"),
    "text_number": ("warning", "a number that YAML reads as text"),
    "out_of_range": ("error", "a number that the argument cannot have"),
    "unknown_choice": ("error", "a word that the argument does not know"),
    "steps_ignored": ("warning", "max_steps of 0 or below, which means the number of epochs"),
    "batch": ("error", "the completions that are sampled at once are not a multiple of num_generations"),
    "no_eval_rows": ("error", "evaluation is on and there are no held-out rows"),
    "refused": ("error", "GRPOConfig itself rejects the arguments"),
    "temperature_zero": ("error", "greedy sampling: all completions of a group would be the same"),
    "learning_rate": ("warning", "a learning rate far from what such runs take"),
    "loss_incomplete": ("warning", "a loss without the setting that its paper has"),
    "small_groups": ("warning", "groups so small that most of them tie"),
    "truncated_masked": ("warning", "truncated completions are left out, and completions are short"),
    "report_to": ("error", "a logger that is unknown or not installed"),
    "no_rewards": ("error", "nothing scores the completions"),
    "reward_weights": ("error", "not one weight for each reward, or all of them zero"),
    "not_a_reward": ("error", "what is given as a reward cannot be called as one"),
    "reward_takes_no_more": ("error", "a reward without **kwargs, to which TRL gives more than it takes"),
    "missing_column": ("error", "a column that a reward names and the dataset lacks"),
    "reward_broken": ("error", "the reward lab found an error"),
    "reward_weak": ("warning", "the reward lab found a warning"),
    "no_rows": ("error", "a dataset without rows"),
    "too_few_rows": ("error", "fewer rows than one step needs: the run ends at step 0"),
    "no_prompt": ("error", "a row without a prompt"),
    "string_prompt": ("error", "plain text prompts to a chat model (a warning if it may be a base model)"),
    "bad_prompt": ("error", "a prompt that is neither text nor a list of messages"),
    "bad_answer": ("error", "a gold answer that is missing or empty, and a reward reads it"),
    "answer_not_text": ("warning", "a gold answer that is a number"),
    "duplicates": ("warning", "the same prompt and answer twice in the training rows"),
    "leak": ("error", "held-out prompts that are trained on"),
    "no_chat_template": ("error", "message prompts, and a tokenizer without a chat template"),
    "no_eos": ("error", "a tokenizer without an end-of-sequence token"),
    "no_pad": ("warning", "a tokenizer without a padding token"),
    "pad_is_eos": ("warning", "padding and end of sequence are one token"),
    "template_without_eos": ("error", "the chat template ends a turn with a token at which sampling does not stop"),
    "template_fails": ("error", "a chat template that raises, or drops what is said"),
    "prefilled_think": (
        "error",
        "the prompt opens a tag that a reward wants in the completion (a warning if no reward surely does)",
    ),
    "tokenizer_mismatch": ("error", "a token that is used and that the model lacks"),
    "prompt_too_long": ("error", "prompts that with their completion do not fit the model"),
    "long_prompts": ("warning", "prompts longer than the limit you chose"),
    "short_completions": ("warning", "completions cut off before the requested form can end"),
    "model_missing": ("error", "a model that cannot be loaded"),
    "bf16_gpu": ("error", "bf16 on a GPU without bf16 units"),
    "fp16_full": ("error", "weights in fp16 that are to be trained with fp16"),
    "fp16_cpu": ("warning", "fp16 on a CPU: slow, and small gradients are lost"),
    "bf16_cpu": ("warning", "bf16 on a CPU: figures differ between machines"),
    "no_gpu": ("error", "arguments for a GPU on a machine without one"),
    "gemma_fp16": ("error", "Gemma 3 in fp16, which it overflows"),
    "flash_attention": ("error", "FlashAttention 2 where it cannot run"),
    "vllm": ("error", "vLLM where it cannot run"),
    "vllm_t4": ("warning", "vLLM on a card on which it sometimes fails"),
    "four_bit_full": ("error", "4-bit weights that are to be trained"),
    "peft_off": ("warning", "settings of an adapter that is not made"),
    "gpu_optimizer": ("warning", "an optimizer made for GPUs, on a CPU"),
    "memory": ("error", "the estimated memory is far above what there is"),
    "memory_tight": ("warning", "the estimated memory is near what there is"),
}


def finding(code: str, what: str, why: str, *fixes: str, severity: str = "") -> Finding:
    """A `Finding` of the severity that its code has, unless this one has its own."""
    return Finding(code, severity or CODES[code][0], what, why, fixes)


@dataclass(frozen=True, repr=False)
class PreflightReport(Report):
    """What `preflight` found.

    Attributes:
        findings: errors first.
        estimate: memory and minutes, or None where too little was given.
        checked: what was looked at.
        skipped: what was not, and what it would have needed.
        notes: what is worth knowing and neither error nor warning.
    """

    estimate: Estimate | None = None
    checked: tuple[str, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """What was checked, the findings, the estimate, the notes, and what was skipped."""
        estimate = [str(self.estimate)] if self.estimate else []
        notes = [f"note    {note}" for note in self.notes]
        skipped = [f"skipped {what}: {why}" for what, why in self.skipped.items()]
        return [f"checked: {', '.join(self.checked)}", *super().lines(), *estimate, *notes, *skipped]
