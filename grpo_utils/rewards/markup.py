r"""Remove what only changes the look of a short text: Markdown, HTML and LaTeX wrappers, full-width letters.

>>> without_markup(r"**$\boxed{\text{odd}}$**"), without_markup("`42`"), without_markup("2**3")
('odd', '42', '2**3')
"""

import re
import unicodedata

#: Other characters for a hyphen, a slash and an apostrophe, zero-width characters, and full-width forms of ASCII.
LOOKALIKES = str.maketrans("\u2010\u2011\u2012\u2013\u2212\u2044\u2019\uffe5", "-----/'\u00a5", "\u200b\u2060\ufeff")
LOOKALIKES |= {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
#: Emphasis and code: the same marks on both sides of a text, and no letter or digit outside.
EMPHASIS = re.compile(r"(?<![A-Za-z0-9*])(\*{1,3})(?![\s*])([^*]+)(?<!\s)\1(?![A-Za-z0-9*])")
UNDERLINES = re.compile(r"(?<![A-Za-z0-9_])(_{1,3})(?![\s_])([^_]+)(?<!\s)\1(?![A-Za-z0-9_])")
TICKS = re.compile(r"(?<![A-Za-z0-9`])(`{1,3})([^`]+)\1(?![A-Za-z0-9`])")
HTML = re.compile(r"</?(?:b|i|u|em|strong|code|mark|span|p)>", re.IGNORECASE)
#: A heading, or a sign for "therefore".
HEADING = re.compile(r"^(?:#{1,6}\s+|(?:\u2234|\u21d2|\u2192|=>|->|\\(?:therefore|Rightarrow|implies)(?![A-Za-z]))\s*)")

WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|textnormal|textsf|texttt|mathrm|mathbf|mathit|mathsf|mathtt|mathnormal|boldsymbol|bm"
    r"|mbox|emph|underline|operatorname|boxed|fbox)\s*\{"
)
DELIMITERS = re.compile(r"\\(?:(?:left|right|displaystyle)(?![A-Za-z])|[()\[\]])")
#: No correct answer has more wrappers.
MOST_WRAPPERS = 8


def without_markup(text: str) -> str:
    r"""The text without emphasis, code ticks, headings, LaTeX wrappers and math delimiters.

    Args:
        text: an answer, not a whole completion; time grows with its length.

    >>> without_markup("### **Answer:** 42"), without_markup("~~42~~"), without_markup(r"\(\mathbf{-3}\)")
    ('Answer: 42', '~~42~~', '-3')
    """
    if not text.isascii():
        text = "".join(_ascii_digit(char) for char in text.translate(LOOKALIKES))
    text = HEADING.sub("", HTML.sub("", text.strip()))
    for pattern in (TICKS, EMPHASIS, EMPHASIS, UNDERLINES, UNDERLINES):
        text = pattern.sub(r"\2", text)
    if "\\" in text:
        text = _without_latex(text)
    if text.count("$") % 2 == 0:  # math delimiters come in pairs, a currency sign does not
        text = text.replace("$", "")
    return text.strip()


def _ascii_digit(char: str) -> str:
    """A decimal digit of any script as 0 to 9; any other character unchanged."""
    return char if char.isascii() else str(unicodedata.decimal(char, char))


def _without_latex(text: str) -> str:
    for _ in range(MOST_WRAPPERS):
        wrapper = WRAPPER.search(text)
        end = wrapper and closing_brace(text, wrapper.end())
        if not end:
            break
        text = f"{text[: wrapper.start()]} {text[wrapper.end() : end]}{text[end + 1 :]}"
    return DELIMITERS.sub("", text)


def closing_brace(text: str, start: int) -> int | None:
    """The index of the brace that closes the one before ``start``.

    >>> closing_brace("{a{b}}c", 1)
    5
    """
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return place
    return None
