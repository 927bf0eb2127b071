"""What can go wrong in a run: every code, its meaning, why it matters, and what to try first."""

from ..findings import Finding

#: A known bug of some releases (unsloth#3129). This fix moves to the top if the run uses accumulation.
ACCUMULATION = (
    "if gradient_accumulation_steps is above 1, try 1 with the same batch on the device; if the loss stays finite, the "
    "library's accumulation is at fault, so upgrade unsloth and trl"
)

#: For each code its meaning, why it matters, and the fixes, most likely first. Causes come before symptoms.
CODES = {
    "nan": (
        "the loss or the gradient is not a number",
        "the weights are ruined, and every further step is wasted",
        "go back to the last checkpoint",
        ACCUMULATION,
        "fp16: compute in bf16 or fp32 (Gemma 3 overflows fp16)",
        "divide learning_rate by 10",
        "find the reward that returns inf or nan (python -m grpo_check probe)",
    ),
    "out_of_memory": (
        "the run needs more memory than there is",
        "the run stopped, and the next one will stop at the same place",
        "halve per_device_train_batch_size and double gradient_accumulation_steps (same training, slower)",
        "if sampling failed, keep steps_per_generation as it was, so that fewer completions are sampled at once",
        "turn gradient_checkpointing on",
        "reduce max_completion_length",
        "load the base model in 4 bits",
        "set optim='adamw_8bit'",
        "reduce num_generations (to 4 at least), or use a smaller model",
    ),
    "kl_explosion": (
        "the policy has moved too far from the reference model",
        "the abilities of the base model are lost, and the KL term now dominates the loss",
        "go back to the last checkpoint",
        "divide learning_rate by 10",
        "raise beta",
        "find the reward that scores nonsense (python -m grpo_check probe)",
    ),
    "string_prompt": (
        "the prompts are plain strings, but the model is a chat model",
        "TRL applies the chat template only to lists of messages, so the model never sees a question in its own format",
        "make each prompt a list of messages: chat_prompt(question)",
    ),
    "mode_collapse": (
        "the policy has collapsed",
        "it gives every prompt the same answer or noise; equal completions have no gradient, so it does not recover",
        "go back to the last checkpoint",
        "divide learning_rate by 10",
        "read the samples: the rewards favor what they repeat",
        "check whether the prompts became much harder at that step; if so, it is not a collapse",
    ),
    "length_hacking": (
        "the reward rises as the length changes, and nothing shows that correctness rises",
        "the policy is rewarded for its length, not for its answers",
        "remove the length reward, or give it only to correct answers",
        "do not raise max_completion_length; more room lets the policy earn more in the same way",
        "give correctness more weight than all the rest together",
        "cut long completions with a limit, not with a reward",
    ),
    "all_truncated": (
        "nearly every completion is cut off",
        "the answer comes at the end, so the rewards score only beginnings",
        "raise max_completion_length (a good value: completions/max_terminated_length of an earlier run)",
        "ask for a shorter answer in the system prompt",
        "set mask_truncated_completions=True only if most completions end; it drops the others from the loss",
    ),
    "no_eos": (
        "no completion ever ends",
        "every completion is cut off at the limit, so rewards see half a text and every step takes the longest time",
        "make prompts lists of messages; TRL applies no chat template to a plain string",
        "set tokenizer.eos_token to the token that ends a turn in the chat template",
        "for a base model without a chat template, end the few-shot examples with the EOS token",
    ),
    "dead_reward": (
        "a reward gives every completion the same score",
        "it cannot tell better completions from worse ones, so the policy learns nothing from it",
        "probe it on a correct and a wrong completion written by hand",
        "if it uses a regular expression over several lines, add re.DOTALL",
        "check that it reads the format and the columns that the data has",
        "if it is a penalty that was never triggered, ignore this",
    ),
    "no_gradient": (
        "nearly every group is tied",
        "every advantage is zero, and so is the gradient, so these steps train nothing",
        "check that the reward reads the completion, not only the prompt",
        "drop prompts that are always or never solved",
        "use easier or harder prompts, or a reward with steps in between",
        "raise num_generations or temperature, so that the completions of a group differ",
    ),
    "saturated": (
        "the groups are tied because nearly all answers are correct",
        "these prompts have nothing left to teach, and more steps only add noise",
        "stop here and evaluate",
        "continue with harder prompts",
    ),
    "reward_at_top": (
        "the groups are tied because the reward is at its top, which does not show that the answers are correct",
        "the reward has nothing left to teach; a reward that was hacked looks the same",
        "read samples next to their gold answers, or evaluate on held-out prompts",
        "in the next run, log a reward for correctness with weight 0 (name it in correctness=[…])",
        "attack the reward: python -m grpo_check probe FILE.py:function",
    ),
    "reward_hacking_suspected": (
        "the reward rises, but the answers are wrong or get worse",
        "the policy has found something that scores better than a correct answer",
        "read the samples and find what they now have in common",
        "attack that reward: python -m grpo_check probe FILE.py:function",
        "give correctness more weight than all the rest together",
    ),
    "format_ignored": (
        "hardly any completion is correctly formatted",
        "a reward that reads the answer from the tags finds no answer",
        "show the format in the system prompt, with an example",
        "reward parts of the format, so that partial progress scores",
        "teach the format with a few hundred rows of SFT first",
    ),
    "no_learning": (
        "the reward does not rise",
        "this run has learned nothing so far; a large model with a small learning rate may need more than 100 steps",
        "raise learning_rate (1e-5 to 1e-4 for an adapter)",
        "use larger groups or more prompts per step, so that the advantages are less noisy",
        "check that the task is within reach: some completions must be correct",
    ),
    "slow_steps": (
        "the steps take longer and longer",
        "the run will take longer than planned",
        "look for other processes on this machine and for swapping",
        "time the rewards; a slow one delays every step",
        "check the GPU temperature; a GPU that is too hot slows down",
    ),
    "stalled": (
        "a step does not finish",
        "the run hangs, and no log shows this",
        "find out where the process hangs: health/verdicts.txt has the stack of every thread",
        "in a reward, limit its time (a regular expression with nested quantifiers, a request without a timeout)",
        "in generate or a collective call, check that every process is still running (nvidia-smi, py-spy)",
    ),
    "growing_completions": (
        "completions are growing",
        "if the extra reasoning helps, accuracy rises too; otherwise each step just takes longer",
        "watch completions/clipped_ratio; completions at the limit lose their answers",
        "if accuracy does not rise, use loss_type='dr_grpo' or 'dapo'; neither favors long wrong answers (lesson 08)",
    ),
    "shrinking_completions": (
        "completions are shrinking",
        "less rambling is harmless, but less reasoning is not",
        "compare accuracy on held-out prompts with the base model",
        "read the samples: is reasoning missing, or only padding?",
        "if accuracy falls, remove what rewards brevity, and reward the format only with a correct answer",
    ),
    "too_short": (
        "too few steps to judge",
        "in so few steps, ordinary noise looks like a trend",
        "log every step (logging_steps=1), and wait",
    ),
    "healthy": ("no problem found", "", "evaluate on held-out prompts; a log alone proves nothing"),
    "no_gain_shown": (
        "no problem visible in this log, but correctness has not risen so far",
        "the run may be young, or the reward may rise without more correct answers",
        "train on, and look again after 20 steps",
        "read samples next to their gold answers",
    ),
    "unchecked": (
        "no problem visible in this log, but it does not show whether the answers are correct",
        "a reward that pays for wrong answers rises in the same way",
        "log a reward for correctness; weight 0 is enough (name it in correctness=[…])",
        "evaluate on held-out prompts; HealthCallback(test_rows) samples some, if they ask for the course's format",
    ),
}

#: Codes that report a change rather than a problem; and all codes that are not problems.
NOTES = ("shrinking_completions", "growing_completions")
QUIET = ("healthy", "no_gain_shown", "unchecked", "too_short", "saturated", "reward_at_top", *NOTES)
#: Codes of runs in which nothing was found.
NOTHING = ("healthy", "no_gain_shown", "unchecked", "too_short")
#: A verdict hides the symptoms that it explains.
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
    "reward_at_top": {"no_learning"},
    "length_hacking": {"all_truncated", "no_gradient", "no_learning", "reward_at_top", *NOTES},
    "reward_hacking_suspected": {"no_learning", "saturated", "reward_at_top"},
}


def verdict(code: str, seen: str, step: int, early: bool = False, accumulated: bool = False) -> Finding:
    """A finding about a run: an error, or a warning if it is too ``early`` to be sure.

    >>> print(verdict("saturated", "80% of groups tied, reward 2.9", 60))
    note    saturated: the groups are tied because nearly all answers are correct (step 60).
            80% of groups tied, reward 2.9
            Why: these prompts have nothing left to teach, and more steps only add noise
            Do:  stop here and evaluate
                 continue with harder prompts
            More: docs/troubleshooting.md#saturated
    """
    what, why, *fixes = CODES[code]
    if accumulated:
        fixes.sort(key=lambda fix: fix != ACCUMULATION)
    severity = "note" if code in QUIET else "warning" if early else "error"
    link = "" if code in ("healthy", "too_short") else f"docs/troubleshooting.md#{code}"
    return Finding(code, severity, f"{what} (step {step}).", why, tuple(fixes), seen, link=link)
