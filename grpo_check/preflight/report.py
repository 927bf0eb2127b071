"""What a preflight found, as a page to read."""

from collections.abc import Sequence
from dataclasses import dataclass

from grpo_utils.errors import CourseError

from .estimate import Estimate

#: Every code, how severe it is, and what it means. An error is a run that would fail or be wasted.
CODES = {
    "unknown_argument": ("error", "a name that GRPOConfig does not know, misspelled or removed"),
    "wrong_type": ("error", "a value of another type than the argument has, such as a number that is a text"),
    "text_number": ("warning", "a number that YAML reads as text"),
    "out_of_range": ("error", "a number that the argument cannot have"),
    "unknown_choice": ("error", "a word that the argument does not know"),
    "max_steps_none": ("error", "max_steps=None, on which the trainer raises"),
    "steps_ignored": ("warning", "max_steps of 0 or below, which means the number of epochs"),
    "group_too_small": ("error", "fewer than two completions for each prompt: nothing to compare"),
    "batch": ("error", "whole groups do not fit into what is generated at once"),
    "eval_batch": ("error", "whole groups do not fit into the evaluation batch"),
    "generation_batch": ("error", "generation_batch_size that does not fit the other sizes"),
    "no_eval_rows": ("error", "evaluation is on and there are no held-out rows"),
    "refused": ("error", "GRPOConfig itself refuses the arguments"),
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
    "string_prompt": ("error", "plain text prompts to a chat model"),
    "maybe_string_prompt": ("warning", "plain text prompts to a model that may be a chat model"),
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
    "short_completions": ("warning", "completions cut off before the asked form can end"),
    "model_missing": ("error", "a model that cannot be had"),
    "bf16_gpu": ("error", "bf16 on a GPU without bf16 units"),
    "fp16_and_bf16": ("error", "two precisions at once"),
    "fp16_full": ("error", "weights in fp16 that are to be trained with fp16"),
    "fp16_cpu": ("warning", "fp16 on a CPU: slow, and small gradients are lost"),
    "bf16_cpu": ("warning", "bf16 on a CPU: figures differ between machines"),
    "no_gpu": ("error", "arguments for a GPU on a machine without one"),
    "gemma_fp16": ("error", "Gemma 3 in fp16, which it overflows"),
    "flash_attention": ("error", "FlashAttention 2 where it cannot run"),
    "vllm": ("error", "vLLM where it cannot run"),
    "vllm_t4": ("warning", "vLLM on a card on which it fails now and then"),
    "four_bit_full": ("error", "4-bit weights that are to be trained"),
    "peft_off": ("warning", "settings of an adapter that is not made"),
    "gpu_optimizer": ("warning", "an optimizer made for GPUs, on a CPU"),
    "memory": ("error", "the estimated memory is far above what there is"),
    "memory_tight": ("warning", "the estimated memory is near what there is"),
}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: what, why it matters, and what to do about it."""

    code: str
    what: str
    why: str
    mend: str
    milder: str = ""

    @property
    def severity(self) -> str:
        """``error`` or ``warning``: that of its code, unless this one is milder."""
        return self.milder or CODES[self.code][0]

    def __str__(self) -> str:
        """All of it, in three lines."""
        return f"{self.severity:8}{self.code}: {self.what}\n        Why: {self.why}\n        Do:  {self.mend}"


@dataclass(frozen=True)
class PreflightReport:
    """What `preflight` found.

    Attributes:
        findings: errors first.
        estimate: memory and minutes, or None where too little was given.
        checked: what was looked at.
        skipped: what was not, and for want of what.
        notes: what is worth knowing and neither error nor warning.
    """

    findings: tuple[Finding, ...]
    estimate: Estimate | None
    checked: tuple[str, ...]
    skipped: dict[str, str]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings do not count."""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that stop a run."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def codes(self) -> set[str]:
        """The codes of all findings."""
        return {finding.code for finding in self.findings}

    def stop_on_errors(self) -> None:
        """Raise one `CourseError` that lists every error; do nothing if there is none."""
        if self.errors:
            listed = "\n".join(str(finding) for finding in self.errors)
            raise CourseError(f"This run would fail or be wasted ({_count(self.errors, 'error')}):\n{listed}")

    def __str__(self) -> str:
        """The findings, the estimate, what was skipped, and a last line with the verdict."""
        warnings = [finding for finding in self.findings if finding.severity == "warning"]
        lines = [f"checked: {', '.join(self.checked)}", *map(str, self.findings)]
        lines += [str(self.estimate)] if self.estimate else []
        lines += [f"note    {note}" for note in self.notes]
        lines += [f"skipped {what}: {why}" for what, why in self.skipped.items()]
        counts = f"{_count(self.errors, 'error')}, {_count(warnings, 'warning')}"
        return "\n".join([*lines, f"{'ok' if self.ok else 'NOT OK'}: {counts}"])

    __repr__ = __str__


def _count(things: Sequence, name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Errors before warnings, each in the order in which they were found."""
    return tuple(sorted(findings, key=lambda finding: finding.severity != "error"))
