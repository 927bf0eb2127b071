"""The arms of the table, and their cells in the order in which they run."""

from pathlib import Path

from grpo_core.rewards.structured import same_json

from grpo_utils.data.extraction import extraction_rows
from grpo_utils.real.measuring import TEMPERATURE

from .answering import answer
from .cells import Arm, Cell, finished
from .measuring import TOKENS, Answerer, in_parts, load, set_threads
from .prompts import INSTRUCTIONS, TASK, examples, instructed, with_examples
from .training import PROMPTS_PER_STEP, STEPS, grpo, quantities, sft

SEEDS = range(3)
NUMBERS = (0, 3, 8)  # of examples in the prompt
CAREFUL = "instruction written with care"
#: How often SFT goes through its answers, by their number. The rates are compared with 200 of them.
PASSES = {50: 8, 200: 3, 2000: 1}
RATES, RATE_AT = ("2e-4", "6e-4", "2e-3"), 200
GRPO_RATE = "2e-4"
SFT_AS_GRPO = f"SFT on {RATE_AT} answers at {GRPO_RATE}"
SAMPLED_PROMPTS, SAMPLES = STEPS * PROMPTS_PER_STEP, 4  # of self-training: as many as GRPO samples
FEW = 3
CONTROLS = Path(__file__).parent.parent / "real_controls"
ROWS_WITH_EXAMPLES = Path(__file__).with_name("rows_with_examples.py")


def with_few(count: int, schema: bool = False) -> Arm:
    """The untrained model with examples in its prompt; each seed draws others."""

    def make(cell: Cell) -> Answerer:
        return Answerer(frame=with_examples(examples(count, cell.seed)), schema=schema, imitated=count)

    return Arm(f"untrained, {count} examples in the prompt{', restricted to a JSON schema' * schema}", make, 8 + count)


def careful(cell: Cell) -> Answerer:
    """The untrained model with an instruction of ours: the one to try, or the best on development rows."""
    chosen = cell.choice or best(CAREFUL, list(INSTRUCTIONS))
    return Answerer(frame=instructed(INSTRUCTIONS[chosen]), about=dict(chosen=chosen))


def best(arm: str, choices: list[str]) -> str:
    """The choice with the most right answers on development rows; of several, the one with the most right fields.

    Raises:
        ValueError: a choice was not measured yet.
    """
    tried = {choice: finished(Cell(arm, choice=choice)) for choice in choices}
    if missing := [choice for choice, found in tried.items() if found is None]:
        raise ValueError(f"{arm}: not measured on development rows yet: {', '.join(missing)}")
    return max(choices, key=lambda choice: (tried[choice]["greedy"].count("1"), tried[choice]["fields"]))


def best_rate() -> str:
    return best(sft_name(RATE_AT), list(RATES))


def sft_name(count: int) -> str:
    return f"SFT on {count} answers"


def sft_arm(count: int, fixed: str = "") -> Arm:
    """SFT on the first training rows of a draw, at a fixed rate or the best one."""

    def make(cell: Cell) -> Answerer:
        rate = cell.choice or fixed or best_rate()
        rows = extraction_rows(TASK, count, "train", cell.seed)
        adapter = sft(rows, float(rate), PASSES[count], cell.seed, cell.work / "sft")
        return Answerer(adapter, imitated=count, about=dict(rate=rate))

    passes = f", {PASSES[count]} times each" if PASSES[count] > 1 else ", once"
    at = f", at {fixed}" if fixed else ""
    return Arm(f"SFT on {count:,} gold answers{passes}{at}", make, 9 + count * PASSES[count] // 50)


def self_training(cell: Cell) -> Answerer:
    """SFT, without examples in the prompt, on the right ones of the samples that three examples give."""
    rows = extraction_rows(TASK, FEW + SAMPLED_PROMPTS, "train", cell.seed)[FEW:]
    model, tokenizer = load()
    framed = with_examples(examples(FEW, cell.seed))

    def sampled(part: range) -> list[list[str]]:
        set_threads()
        prompts = [framed(rows[n]["prompt"]) for n in part]
        how = dict(samples=SAMPLES, temperature=TEMPERATURE, seed=10_000 * cell.seed + part.start)
        return answer(model, tokenizer, prompts, max_new_tokens=TOKENS, **how)

    said = in_parts(SAMPLED_PROMPTS, 20, cell.work / "own", sampled)
    right = [[text for text in texts if same_json(text, row["answer"])] for texts, row in zip(said, rows, strict=True)]
    kept = [dict(row, answer=texts[0]) for row, texts in zip(rows, right, strict=True) if texts]  # one for each prompt
    adapter = sft(
        kept, float(GRPO_RATE), PASSES[RATE_AT], cell.seed, cell.work / "sft"
    )  # the best rate's seeds scatter
    about = dict(rate=GRPO_RATE, samples=SAMPLED_PROMPTS * SAMPLES, right=sum(map(len, right)), kept=len(kept))
    return Answerer(adapter, imitated=FEW, checked=SAMPLED_PROMPTS, about=about)


def grpo_arm(what: str, *options: str, rewards: Path | None = None, minutes: int = 70) -> Arm:
    """GRPO as in `make real`, with some options or another reward."""

    def make(cell: Cell) -> Answerer:
        adapter, curves = grpo(cell.seed, cell.work, *options, rewards=rewards)
        return Answerer(adapter, checked=0 if rewards else STEPS * PROMPTS_PER_STEP, about=dict(curves=curves))

    return Arm(what, make, minutes)


def sft_then_grpo(cell: Cell) -> Answerer:
    """GRPO that goes on from the adapter of SFT on 50 answers, which another cell has trained or this one trains."""
    rows = extraction_rows(TASK, 50, "train", cell.seed)
    start = sft(rows, float(best_rate()), PASSES[50], cell.seed, Cell(sft_name(50), cell.seed).work / "sft")
    adapter, curves = grpo(cell.seed, cell.work, start=start)
    about = dict(rate=best_rate(), curves=curves)
    return Answerer(adapter, imitated=50, checked=STEPS * PROMPTS_PER_STEP, about=about)


def form_first(cell: Cell) -> Answerer:
    """GRPO in two stages of equal length: the first pays for the form alone, the second for everything."""
    start, early = grpo(cell.seed, cell.work / "form", rewards=CONTROLS / "form_first.py", steps=STEPS // 2)
    adapter, late = grpo(cell.seed + 100, cell.work, start=start, steps=STEPS - STEPS // 2)  # other rows and samples
    form, everything = (quantities(folder / "run") for folder in (cell.work / "form", cell.work))
    about = dict(curves={name: [*early.get(name, []), *late[name]] for name in late})
    about |= dict(quantities={kind: [*form[kind], *everything[kind]] for kind in form})
    return Answerer(adapter, checked=(STEPS - STEPS // 2) * PROMPTS_PER_STEP, about=about)


def grpo_with_examples(cell: Cell) -> Answerer:
    """GRPO with three examples in the prompt, in training and after it."""
    adapter, curves = grpo(cell.seed, cell.work, "--max_prompt_tokens", "600", data=ROWS_WITH_EXAMPLES)
    gold = dict(imitated=FEW, checked=STEPS * PROMPTS_PER_STEP)
    return Answerer(adapter, with_examples(examples(FEW, cell.seed)), **gold, about=dict(curves=curves))


ARMS = {
    **{f"{count} examples": with_few(count) for count in NUMBERS},
    CAREFUL: Arm("untrained, an instruction written with care", careful, 9),
    **{f"JSON schema, {count} examples": with_few(count, schema=True) for count in NUMBERS[:2]},
    **{sft_name(count): sft_arm(count) for count in PASSES},
    SFT_AS_GRPO: sft_arm(RATE_AT, GRPO_RATE),
    "self-training": Arm("SFT on its own samples with three examples that a check finds right", self_training, 40),
    "GRPO": grpo_arm("GRPO as in `make real`"),
    "GRPO, form only": grpo_arm("GRPO that pays for one flat JSON object alone", rewards=CONTROLS / "format_alone.py"),
    "SFT on 50 answers, then GRPO": Arm("SFT on 50 gold answers, then GRPO", sft_then_grpo, 70),
    "form first, then GRPO": Arm("GRPO in two stages: the form, then everything", form_first, 70),
    "GRPO at 8e-4": grpo_arm("GRPO at four times the rate", "--learning_rate", "8.0e-4"),
    "GRPO with 3 examples": Arm("GRPO, 3 examples in the prompt", grpo_with_examples, 300),
}
ONE_SEED = ("0 examples", CAREFUL, "JSON schema, 0 examples", "GRPO with 3 examples")  # the first three draw nothing
#: The order in which arms run. With each seed, what is cheap and may make the rest needless comes first.
ORDER = (
    *("0 examples", "3 examples", CAREFUL, "8 examples", "JSON schema, 0 examples", "JSON schema, 3 examples"),
    *(sft_name(200), sft_name(50), SFT_AS_GRPO, "GRPO", "form first, then GRPO", "self-training", sft_name(2000)),
    *("GRPO, form only", "SFT on 50 answers, then GRPO", "GRPO at 8e-4"),
)


def in_order() -> list[Cell]:
    """All cells; before the first that needs a choice come those that it is made of."""
    cells = [Cell(arm, seed) for seed in SEEDS for arm in ORDER if not seed or arm not in ONE_SEED]
    cells += [Cell("GRPO with 3 examples")]
    for arm, choices in ((CAREFUL, INSTRUCTIONS), (sft_name(RATE_AT), RATES)):
        place = cells.index(Cell(arm))
        cells[place:place] = [Cell(arm, choice=choice) for choice in choices]
    return cells


CELLS = in_order()


def of(arm: str) -> list[dict]:
    """What the finished cells of an arm stored, by seed."""
    found = (finished(Cell(arm, seed)) for seed in SEEDS)
    return [each for each in found if each]
