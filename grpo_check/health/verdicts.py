"""What can be wrong with a run: every code, what it means, why it matters, and what to try first."""

from ..findings import Finding

#: A known fault of some releases (unsloth#3129); first where accumulation is known, left out where there is none.
ACCUMULATION = (
    "gradient_accumulation_steps above 1: try 1 with the same batch on the device; if the loss stays finite, the fault "
    "is in the library's accumulation: upgrade unsloth and trl"
)

#: What each code means, why it matters, and what to do, the most likely fix first; causes before consequences.
CODES = {
    "nan": (
        "the loss or the gradient is not a number",
        "the weights are lost, and every further step is wasted",
        "go back to the last checkpoint",
        ACCUMULATION,
        "fp16: compute in bf16 or fp32 (Gemma 3 overflows fp16)",
        "divide learning_rate by 10",
        "look for a reward that returns inf or nan: probe it",
    ),
    "out_of_memory": (
        "the memory was too small",
        "the run is over, and the next one ends at the same place",
        "halve per_device_train_batch_size and double gradient_accumulation_steps (the same training, slower)",
        "if it ended while sampling: keep steps_per_generation as it was, so that fewer are sampled at once",
        "turn gradient_checkpointing on",
        "shorten max_completion_length",
        "load the base in 4 bits",
        "optim='adamw_8bit'",
        "take fewer num_generations (not under 4), or a smaller model",
    ),
    "kl_explosion": (
        "the policy has run away from the reference model",
        "what the base model could do is lost, and the KL term now rules the loss",
        "go back to the last checkpoint",
        "divide learning_rate by 10",
        "raise beta",
        "look for a reward that pays for nonsense: probe it",
    ),
    "string_prompt": (
        "the prompts are plain strings, and the model is a chat model",
        "TRL applies the chat template to lists of messages only, so the model never sees a question as it knows it",
        "make each prompt a list of messages: chat_prompt(question)",
    ),
    "mode_collapse": (
        "the policy has collapsed",
        "it says the same to every prompt, or only noise; groups of equal completions teach nothing, so it stays there",
        "go back to the last checkpoint",
        "divide learning_rate by 10",
        "look at the samples: what is repeated is what the rewards pay",
        "did the prompts become much harder at that step? Then it is not a collapse",
    ),
    "length_hacking": (
        "the length changes and the reward rises, but correctness does not",
        "the policy is paid for its length, not for its answers",
        "take the length reward out, or pay it only where the answer is right",
        "give correctness more weight than all the rest together",
        "cut long ramblings with a limit, not with a reward",
    ),
    "all_truncated": (
        "nearly every completion is cut off",
        "the answer comes at the end, so it is never seen, and only the beginnings are paid",
        "raise max_completion_length (see completions/max_terminated_length of a run that ended)",
        "ask for a shorter answer in the system prompt",
        "mask_truncated_completions=True only if most do end: it drops the cut ones from the loss",
    ),
    "no_eos": (
        "no completion ever ends",
        "an answer that never ends is cut off; rewards see half a text, and every step takes the longest time",
        "prompts must be lists of messages: a plain string gets no chat template",
        "tokenizer.eos_token must be the token that ends a turn in the chat template",
        "a base model without a chat template: end the few-shot examples with the EOS token",
    ),
    "dead_reward": (
        "a reward gives the same score to everything",
        "it cannot tell a better completion from a worse one, so it teaches nothing",
        "probe it on a right and a wrong completion written by hand",
        "a regular expression over lines needs re.DOTALL",
        "does it read the form and the columns that the data really has?",
        "a penalty that was never triggered is harmless",
    ),
    "no_gradient": (
        "nearly every group is tied",
        "the advantage of each completion is zero, and so is the gradient: these steps train nothing",
        "does the reward look at the completion at all, or only at the prompt?",
        "leave out prompts that are always or never solved",
        "take easier or harder prompts, or a reward with steps in between",
        "raise num_generations or temperature, so that a group differs",
    ),
    "saturated": (
        "the groups are tied because nearly all answers are right",
        "there is nothing left to learn from these prompts; more steps only add noise",
        "stop here and evaluate",
        "go on with harder prompts",
    ),
    "reward_hacking_suspected": (
        "one reward rises while correctness falls",
        "the policy has found something that pays better than being right",
        "read the samples: what do they now have in common?",
        "attack that reward: python -m grpo_check probe FILE.py:function",
        "give correctness more weight than all the rest together",
    ),
    "format_ignored": (
        "hardly any completion is in the asked form",
        "rewards that read the answer from the form see none",
        "say the form in the system prompt, with an example",
        "pay parts of the form, so that there is a slope to climb",
        "teach the form with a few hundred rows of SFT first",
    ),
    "no_learning": (
        "the reward does not rise",
        "so far this run has shown nothing; a large model with a small rate may need a hundred steps and more",
        "raise learning_rate (an adapter takes 1e-5 to 1e-4)",
        "are the advantages noise? take larger groups or more prompts per step",
        "is the task within reach: is a completion sometimes right?",
    ),
    "slow_steps": (
        "the steps take longer and longer",
        "the run will not end when you think",
        "is another process on this machine, or is memory being swapped?",
        "time the rewards: a slow one holds up every step",
        "a GPU that is too hot slows down",
    ),
    "stalled": (
        "a step does not end",
        "the run hangs, and no log shows it",
        "find out where the process is: health/verdicts.txt has the stack of every thread",
        "in a reward: bound its time (a regular expression with nested quantifiers, a request without a timeout)",
        "in generate or a collective call: check that every process still runs (nvidia-smi, py-spy)",
    ),
    "growing_completions": (
        "completions grow",
        "if the reasoning helps, accuracy rises too; if not, each step just takes longer",
        "watch completions/clipped_ratio: answers that reach the limit lose their endings",
        "if accuracy does not rise: loss_type='dr_grpo' or 'dapo' does not favor long wrong answers (lesson 08)",
    ),
    "shrinking_completions": (
        "completions shrink",
        "losing rambling does no harm; losing reasoning does",
        "compare accuracy on held-out prompts with that of the base model",
        "read the samples: is the reasoning gone, or only the padding?",
        "if accuracy falls: remove what pays for brevity; pay for the form only with a right answer",
    ),
    "too_short": (
        "too few steps to judge",
        "ordinary noise looks like a trend",
        "log every step (logging_steps=1), and wait",
    ),
    "healthy": ("nothing wrong is seen", "", "evaluate on held-out prompts: a log proves nothing"),
}

#: Codes that say what changed and not that anything is wrong, and all that need no action.
NOTES = ("shrinking_completions", "growing_completions")
QUIET = ("healthy", "too_short", "saturated", *NOTES)
#: What a verdict explains is not reported with it.
_UNPAID = {"dead_reward", "no_gradient", "no_learning", "format_ignored"}
_FOLLOWS = {*_UNPAID, "no_eos", "all_truncated", "length_hacking", "reward_hacking_suspected", *NOTES}
EXPLAINS = {
    "nan": set(CODES) - {"nan"},
    "kl_explosion": {*_FOLLOWS, "mode_collapse"},
    "string_prompt": {*_UNPAID, "no_eos", "all_truncated"},
    "mode_collapse": _FOLLOWS,
    "no_eos": {*_UNPAID, *NOTES},
    "all_truncated": {*_UNPAID, *NOTES},
    "no_gradient": {"no_learning"},
    "saturated": {"no_learning"},
    "length_hacking": {"all_truncated", "no_gradient", "no_learning", *NOTES},
    "reward_hacking_suspected": {"no_learning"},
}


def verdict(code: str, seen: str, step: int, early: bool = False, accumulated: bool = False) -> Finding:
    """A finding about a run; one that it is too ``early`` to call an alarm is a warning.

    >>> print(verdict("saturated", "80% of the groups tied, reward 2.9", 60))
    note    saturated: the groups are tied because nearly all answers are right (step 60).
            80% of the groups tied, reward 2.9
            Why: there is nothing left to learn from these prompts; more steps only add noise
            Do:  stop here and evaluate
                 go on with harder prompts
            More: docs/troubleshooting.md#saturated
    """
    what, why, *fixes = CODES[code]
    if accumulated:
        fixes.sort(key=lambda fix: fix != ACCUMULATION)
    severity = "note" if code in QUIET else "warning" if early else "error"
    link = "" if code in ("healthy", "too_short") else f"docs/troubleshooting.md#{code}"
    return Finding(code, severity, f"{what} (step {step}).", why, tuple(fixes), seen, link=link)
