"""Diagrams of failures with their fixes and of what each package does; and the lessons with their minutes."""

from .sheet import BLUE, GRAY, GREEN, ORANGE, PINK, SMALL, WIDTH, YELLOW, Drawn, Place, Sheet

#: Lessons and the minutes that a person needs for them, from the instructor guide; scripts/minutes.py copies them.
LESSONS = {
    "00 Start here": "30–35",
    "01 Data": "55–65",
    "02 Rewards": "55–65",
    "03 GRPO with a 4-bit LoRA": "60–65",
    "04 Reading a run": "55–65",
    "05 A real model": "50–60",
    "06 Did it get better?": "60–70",
    "07 Export": "50–60",
    "08 GRPO by hand": "60–75",
    "09 Stages": "45–55",
    "10 SFT, then GRPO": "55–65",
    "11 Thinking: tags, templates and limits": "55–65",
    "12 A judge as a reward": "60–70",
    "13 Tools and turns": "60–70",
    "14 When the log lies": "55–65",
    "15 Controls and leaks": "55–65",
    "16 Distill or reinforce?": "55–65",
}
#: The lessons for a reader in a hurry.
SHORT = ("00", "02", "03", "06")
#: What to look for in the first twenty steps, the verdicts of ``grpo_check health`` that it leads to, and the fix.
FAILURES = (
    ("loss or grad_norm\nis NaN?", "nan", "go back to a checkpoint,\ndivide learning_rate by 10"),
    ("the reward\ncollapsed?", "mode_collapse", "go back to a checkpoint,\ndivide learning_rate by 10"),
    (
        "4 of 5 completions\nare truncated?",
        "all_truncated, no_eos",
        "raise max_completion_length,\ncheck the EOS token",
    ),
    ("a reward is\nalways the same?", "dead_reward", "probe it with a correct\nand a wrong completion"),
    ("19 of 20 groups tied,\nanswers wrong?", "no_gradient", "take easier prompts, or a\nreward with steps in between"),
    ("19 of 20 groups tied,\nanswers correct?", "saturated", "stop and evaluate,\nor take harder prompts"),
    (
        "the reward rises,\naccuracy does not?",
        "length_hacking,\nreward_hacking_suspected",
        "give correctness more weight\nthan all the rest together",
    ),
)
#: What each package does.
PACKAGES = {
    "Unsloth": "loads the policy,\nand patches it for speed on a GPU",
    "transformers": "model, tokenizer,\ngenerate",
    "bitsandbytes": "frozen base\nin 4 bits",
    "PEFT": "adapter\n(LoRA)",
    "datasets": "rows with prompts\nand answers",
    "TRL": "GRPOTrainer samples,\nscores and updates",
}


def failures() -> Drawn:
    """Questions about the first steps of a log, in order, each with its fix."""
    sheet, step = Sheet(WIDTH, 10.45), 1.24
    above = sheet.box(Place(0.15, 0.12, 2.2, 0.6), "First 20 steps", "", BLUE, round=True)
    for row, (question, codes, fix) in enumerate(FAILURES):
        asked = sheet.box(Place(0.15, 1.1 + row * step, 2.2, 0.75), "", question, YELLOW, round=True)
        cure = Place(2.95, asked.top - 0.2, 3.3, 1.15)
        sheet.box(cure, codes, fix, GREEN if codes == "saturated" else ORANGE)
        sheet.join(above, asked, cure)
        sheet.text(2.62, asked.middle[1] - 0.18, "yes", fontsize=SMALL)
        sheet.text(1.5, asked.bottom + 0.2, "no", fontsize=SMALL)
        above = asked
    last = Place(0.15, 1.1 + len(FAILURES) * step, 6.1, 0.55)
    end = sheet.box(last, "No alarm: evaluate on held-out prompts", "", GREEN)
    sheet.join(above, end)
    steps = "; ".join(f"{question} {fix} ({codes})" for question, codes, fix in FAILURES)
    return sheet.figure, (
        "A flow chart for the first 20 steps of a log. It asks questions in order, and each yes leads to a fix and to "
        f"verdicts of the health check. {steps[0].upper()}{steps[1:]}. "
        "If every answer is no, evaluate on held-out prompts."
    ).replace("\n", " ")


def packages() -> Drawn:
    """What each package does in a run."""
    sheet, said, width = Sheet(WIDTH, 5.4), PACKAGES, 1.86
    loader = sheet.box(Place(0.15, 0.15, 6.1, 1.0), "Unsloth", said["Unsloth"], PINK, round=True)
    policy = sheet.box(Place(0.15, 1.6, 6.1, 1.75), "", "", BLUE)
    sheet.text(3.2, 1.8, "Policy", weight="bold")
    for column, name in enumerate(("transformers", "bitsandbytes", "PEFT")):
        sheet.box(Place(0.3 + column * (width + 0.11), 2.05, width, 1.1), name, said[name], GREEN)
    rows = sheet.box(Place(0.15, 4.05, 2.4, 1.15), "datasets", said["datasets"], GRAY)
    trainer = sheet.box(Place(3.35, 4.05, 2.9, 1.15), "TRL", said["TRL"], ORANGE)
    sheet.join(loader, policy)
    sheet.join(rows, trainer, policy)
    sheet.text(5.3, 3.72, "trains")
    words = "; ".join(f"{name}: {does}" for name, does in said.items())
    return sheet.figure, (
        f"Which package does what. {words}. The policy is made of transformers, bitsandbytes and PEFT. TRL trains the "
        "policy on rows from datasets. Unsloth is optional and works on top of the others."
    ).replace("\n", " ")
