"""What is wrong with each reward of the zoo, how to exploit it, and what `grpo-check probe` says of it."""

from collections.abc import Callable
from dataclasses import dataclass

from . import broken, sound, tasks
from .tasks import Row, Task, listed, operation, other_unit, swapped_date


@dataclass(frozen=True, eq=False)
class Entry:
    """A reward with its task.

    Attributes:
        fault: what is wrong in one sentence; None for a sound reward.
        exploit: a completion that does not do the task and is paid as much as a correct one, or more.
        errors: what `grpo-check probe` reports as errors, as codes, when it gets some rows of the task.
        warnings: the same for warnings, but for `slow`, which depends on the machine.
    """

    task: Task
    reward: Callable
    fault: str | None = None
    exploit: Callable[[Row], str] | None = None
    errors: str = ""
    warnings: str = ""

    @property
    def name(self) -> str:
        """The name of the reward."""
        return self.reward.__name__

    @property
    def passes_probe(self) -> bool:
        """Whether `grpo-check probe` finds no error, so that its exit code is 0."""
        return not self.errors


FILLER = "First I look at the numbers, and then I think about how they go together before I write anything down. " * 6
#: A common word that starts with each letter.
STARTS = {"A": "Any of them could be.", "B": "Both look fine.", "C": "Cannot tell.", "D": "Difficult to say."}

BROKEN = (
    Entry(
        tasks.SUMS,
        broken.xml_tags_and_answer,
        "Every tag is paid again, without a limit, so a pile of tags earns more than the right number.",
        lambda row: "<answer></answer>" * 8,
        errors="farmable",
    ),
    Entry(
        tasks.SUMS,
        broken.number_within_tolerance,
        "A tolerance of 5% accepts several wrong integers around the right one.",
        lambda row: f"<answer>{int(row['answer']) + 1}</answer>",
        errors="wrong_beats_right",
    ),
    Entry(
        tasks.SUMS,
        broken.equation_result,
        "The answer is evaluated, so copying the sum from the prompt counts as working it out.",
        lambda row: f"<answer>{operation(row)}</answer>",
    ),
    Entry(
        tasks.SUMS,
        broken.accuracy_and_format,
        "It reads a column that the dataset does not have, and the empty default is part of every answer.",
        lambda row: "<answer>0</answer>",
    ),
    Entry(
        tasks.SUMS,
        broken.effort_and_answer,
        "The points for the length of the work are worth more than those for the right number.",
        lambda row: f"{FILLER}<answer>0</answer>",
    ),
    Entry(
        tasks.PROBLEMS,
        broken.hash_accuracy,
        "The branch for parser errors pays full marks, so an answer that cannot be parsed is always right.",
        lambda row: "I do not know.",
        errors="pays_abstaining wrong_beats_right",
    ),
    Entry(
        tasks.PROBLEMS,
        broken.rubric_judge,
        "The criteria are words, and together they are worth more than the right number.",
        lambda row: "So I check this 1 number. Clearly it is right, in conclusion.",
        errors="farmable",
    ),
    Entry(
        tasks.ORDERS,
        broken.json_schema,
        "Only names and types are checked, so one fixed object earns full marks for every order.",
        lambda row: '{"item": "x", "size": "x", "quantity": 1}',
    ),
    Entry(
        tasks.ORDERS,
        broken.json_matches_order,
        "Only the fields that are there are compared, so an empty object agrees with every order.",
        lambda row: "{}",
        errors="wrong_beats_right",
    ),
    Entry(
        tasks.SENTIMENT,
        broken.sentiment_label,
        "The label may stand anywhere in the text, so naming all three labels is always right.",
        lambda row: "It could be positive, negative or neutral.",
        errors="pays_abstaining wrong_beats_right",
    ),
    Entry(
        tasks.CITY_LISTS,
        broken.city_precision,
        "Only precision counts, so one sure city earns as much as the whole list.",
        lambda row: listed(row["target"])[0],
    ),
    Entry(
        tasks.SUMMARY,
        broken.summary_near_fifty,
        "The sign of the distance is missing, so the text that is furthest from the wanted length earns most.",
        lambda row: FILLER,
        errors="length_farm",
    ),
    Entry(
        tasks.SUMMARY,
        broken.one_sentence,
        "Only the form is checked, so one sentence about nothing fits every document.",
        lambda row: "This is a short summary of the text.",
    ),
    Entry(
        tasks.SUMMARY,
        broken.rouge_with_reference,
        "Recall has no price for length, so a copy of the whole document is the best summary.",
        lambda row: row["document"],
        errors="pays_abstaining wrong_beats_right",
    ),
    Entry(
        tasks.KEYWORDS,
        broken.keyword_density,
        "The division by the length rewards leaving out: one keyword alone has the highest density.",
        lambda row: listed(row["answer"])[0],
    ),
    Entry(
        tasks.TRANSLATION,
        broken.translation_similarity,
        "English words that look like the French ones are similar enough, so the word of the prompt is paid.",
        lambda row: row["word"],
    ),
    Entry(
        tasks.PHRASE,
        broken.answers_in_french,
        "It measures the language and not the meaning, so one French word is perfect French.",
        lambda row: "le le le",
    ),
    Entry(
        tasks.CHOICE,
        broken.chosen_letter,
        "The first character counts even if it begins a word, so a sentence can stand for a letter.",
        lambda row: STARTS[row["answer"]],
    ),
    Entry(
        tasks.CHOICE,
        broken.no_wrong_option,
        "Only wrong letters cost something, so an answer without a letter earns full marks.",
        lambda row: "It depends on the question.",
        errors="pays_abstaining wrong_beats_right",
    ),
    Entry(
        tasks.DATES,
        broken.same_date,
        "The numbers are compared as a set, so day and month may change places.",
        swapped_date,
    ),
    Entry(
        tasks.DATES,
        broken.iso_date_format,
        "Any text with a date-like piece is paid, and the date itself is never compared.",
        lambda row: "0000-00-00",
    ),
    Entry(
        tasks.REPLIES,
        broken.politeness,
        "Polite phrases are counted wherever they stand, so a list of them is a perfect reply.",
        lambda row: "Please, thank you, sorry.",
        errors="farmable",
    ),
    Entry(
        tasks.REPLIES,
        broken.reply_penalties,
        "There are only penalties, and every word costs something, so an empty reply is the best one.",
        lambda row: "",
        errors="farmable",
    ),
    Entry(
        tasks.REPLIES,
        broken.judged_reply,
        "The score is searched in a transcript that begins with the reply, so the reply can grade itself.",
        lambda row: "Score: 99",
        errors="wrong_beats_right",
    ),
    Entry(
        tasks.SORTING,
        broken.same_numbers,
        "Both lists are sorted before they are compared, so the unsorted list of the prompt is right.",
        lambda row: row["given"],
        errors="pays_missing_answer",
    ),
    Entry(
        tasks.QUANTITIES,
        broken.quantity_with_unit,
        "Case is folded, but in units it distinguishes mega from milli and bytes from bits.",
        other_unit,
    ),
    Entry(
        tasks.SPELLING,
        broken.correction_similarity,
        "The sentence with the mistake is similar enough, so a copy of the prompt earns full marks.",
        lambda row: row["text"],
        errors="pays_abstaining",
    ),
    Entry(
        tasks.EXPRESSIONS,
        broken.passes_the_example,
        "The only test is the example of the prompt, so its result as a constant passes.",
        lambda row: str(row["example"][1]),
    ),
    Entry(
        tasks.SOURCES,
        broken.cited_answer,
        "Each citation is paid again, so citing the same note many times earns more than the right name.",
        lambda row: "[1] [1] [1] [1]",
        errors="farmable pays_missing_answer",
    ),
    Entry(
        tasks.STEPS,
        broken.reasoning_steps,
        "The marks of steps are counted, and what the steps say is not.",
        lambda row: "First, Second, Third,",
    ),
)

SOUND = (
    Entry(
        tasks.SUMS,
        sound.right_and_short,
    ),
    Entry(
        tasks.SUMS,
        sound.form_then_number,
    ),
    Entry(
        tasks.SUMS,
        sound.above_the_group,
    ),
    Entry(
        tasks.PROBLEMS,
        sound.closer_is_better,
        warnings="wrong_beats_right",
    ),
    Entry(
        tasks.PROBLEMS,
        sound.only_penalties,
        errors="wrong_beats_right",
    ),
    Entry(
        tasks.ORDERS,
        sound.fields_of_the_order,
    ),
    Entry(
        tasks.SENTIMENT,
        sound.label_alone,
    ),
    Entry(
        tasks.CITY_LISTS,
        sound.city_f1,
    ),
    Entry(
        tasks.SUMMARY,
        sound.who_did_what_where,
    ),
    Entry(
        tasks.TRANSLATION,
        sound.word_and_accents,
    ),
    Entry(
        tasks.DATES,
        sound.date_parts,
    ),
    Entry(
        tasks.REPLIES,
        sound.every_rule_of_a_reply,
        errors="wrong_beats_right",
    ),
    Entry(
        tasks.SORTING,
        sound.pairs_in_order,
    ),
    Entry(
        tasks.SPELLING,
        sound.edits_left,
    ),
    Entry(
        tasks.EXPRESSIONS,
        sound.hidden_points,
    ),
)

ZOO = BROKEN + SOUND
