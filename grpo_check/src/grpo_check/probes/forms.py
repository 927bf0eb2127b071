"""The formats in which models are asked to answer, and how `probe` writes a completion in one.

>>> FORMS[0].write("15 + 27 = 42", "42")
'<reasoning>15 + 27 = 42</reasoning><answer>42</answer>'
"""

from collections.abc import Sequence
from typing import NamedTuple

from grpo_core.errors import CourseError
from grpo_core.rewards import TAGS


class Form(NamedTuple):
    """What comes before and after the reasoning, and before and after the answer."""

    before_reasoning: str
    after_reasoning: str
    before_answer: str
    after_answer: str

    def write(self, reasoning: str, answer: str) -> str:
        """A completion in this format; without any tags it is the answer alone."""
        if not any(self):
            return answer
        if self.before_reasoning.endswith('"'):  # the reasoning is a JSON string
            reasoning = reasoning.replace("\n", "\\n")
        return f"{self[0]}{reasoning}{self[1]}{self[2]}{answer}{self[3]}"

    def __str__(self) -> str:
        """The format on one line."""
        if not any(self):
            return "the answer alone"
        return self.write("…", "…").replace("\n", "⏎")


class BareForm(Form):
    """A format without room for reasoning, such as a JSON object and nothing else."""

    def write(self, reasoning: str, answer: str) -> str:
        """The answer between its delimiters."""
        return f"{self.before_answer}{answer}{self.after_answer}"

    def __str__(self) -> str:
        """The format on one line."""
        return f"{self.write('', '…')} and nothing else"


PLAIN, BOXED, HASHES = Form("", "\n", "", ""), Form("", " ", "\\boxed{", "}"), Form("", "\n", "#### ", "")
#: The formats that `probe` tries by default; the first is asked for where nothing else is known.
FORMS = (
    Form(*TAGS),
    Form("<reasoning>\n", "\n</reasoning>\n", "<answer>\n", "\n</answer>\n"),
    Form("", "\n", "<answer>", "</answer>"),
    PLAIN,
    Form("<think>", "</think>", "", ""),
    Form("<think>\n", "\n</think>\n", "", ""),
    Form("<think>", "</think>", "<answer>", "</answer>"),
    Form("<think>\n", "\n</think>\n", "<answer>\n", "\n</answer>"),
    BOXED,
    Form("<think>", "</think>", "\\boxed{", "}"),
    HASHES,
    Form("", " The answer is ", "", "."),
    Form("", "\n", "```python\n", "\n```"),
    Form("", "\n", "```json\n", "\n```"),
    Form("<start_working_out>", "<end_working_out>", "<SOLUTION>", "</SOLUTION>"),
    Form("", "\n", "Answer: ", ""),
    Form("", "\n", "Final Answer: ", ""),
    Form("", "\n", "**Answer:** ", ""),
    Form("", "\n", "**Final Answer:** ", ""),
    Form("<think>", "</think>\n", "Answer: ", ""),
    Form("", "\n", "$\\boxed{", "}$"),
    Form("", "\n", '{"answer": ', "}"),
    Form("", "\n", '{"answer": "', '"}'),
    BareForm("", "", '{"answer": ', "}"),
    BareForm("", "", '{"answer": "', '"}'),
    Form('{"reasoning": "', '", ', '"answer": ', "}"),
    Form('{"reasoning": "', '", ', '"answer": "', '"}'),
    Form("", "", "", ""),
)


def read_tags(tags: Sequence[str] | None) -> Form:
    """Four texts as a format; no text at all means the answer alone, and None the first of `FORMS`.

    >>> read_tags([]).write("thinking", "42")
    '42'

    Raises:
        CourseError: the number of texts is neither four nor zero.
    """
    if tags is None:
        return FORMS[0]
    if isinstance(tags, str) or len(tags) not in (0, 4):
        raise CourseError(
            f"tags={tags!r} should be the four texts before and after the reasoning and the answer, such as "
            f"{TAGS}. Use '' if there is no such text, and () for the answer alone."
        )
    return Form(*(tags or ("", "", "", "")))
