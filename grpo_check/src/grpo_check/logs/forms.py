"""The entries of a log in a text: JSON, JSON lines, a table, a notebook, or what a trainer printed.

Each form has a reader that finds what it can. The one that finds the most steps of a GRPO run counts, because a
notebook can hold the same run twice, as a table and as printed dictionaries.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from itertools import pairwise

from grpo_core.errors import CourseError

from .names import metric_of

#: What the readers here can read, for a message.
READABLE = (
    "a trainer_state.json or a folder with one, JSON, JSON lines, a CSV file (a chart or the history of W&B), a "
    "notebook with its outputs, the table that a notebook shows, and the dictionaries or lines that a trainer printed"
)
#: A dictionary; the first one may have been copied without its bracket.
_ENTRY = re.compile(r"(?:\{|\A)[^{}]*\}")
#: ``'loss': '0.01'`` of transformers 5, ``'loss': 0.01``, ``"loss": NaN``. A terminal may break the line in a name.
_PAIR = re.compile(r"""(['"])([^'"{}]{1,200})\1\s*:\s*(?:(['"])([^'"{}]*)\3|([-+.\w]+))""")
_COLOR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
#: The bar of the trainer, which no other bar is, because they have a description: ``5%|▌    | 5/100 [00:34<07:28``.
_BAR = re.compile(r"(?:^|[\r\n}])[ ]*(?:Train:[ ]*)?\d{1,3}%\|[^|\r\n]*\|[ ]*(\d+)/(\d+)[ ]\[")
#: ``loss=0.01``, and verl's ``critic/score/mean:0.41``.
_IN_LINE = re.compile(
    r"(?<![\w/.])([A-Za-z][\w/@%.-]{0,100})\s?[=:]\s?([-+]?\d{1,30}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,3})?|[-+]?(?:nan|inf)\b)"
)
#: One of these is in a line next to the reward.
_OF_A_LINE = {"loss", "learning_rate", "grad_norm", "kl", "entropy", "reward_std", "completions/mean_length"}
#: ``[Step 12] …``, ``step 12/100: …``.
_STEP_OF_LINE = re.compile(r"\bstep[ =:#]{0,3}(\d{1,9})\b", re.IGNORECASE)
_LONGEST_LINE = 20_000
#: One of these is in all that a trainer prints about a step.
_OF_A_TRAINER = {"loss", "reward", "learning_rate", "grad_norm"}
#: The smallest and the largest value among several runs, in W&B's export of a chart.
_RANGE = ("__MIN", "__MAX")


def entries_in(text: str, name: str) -> list[dict]:
    """The entries of a log in a text; ``name`` is that of its file, for a message.

    >>> entries_in("{'loss': '0.01', 'reward': '0.5'}", "console.txt")
    [{'loss': '0.01', 'reward': '0.5'}]

    Raises:
        CourseError: there are none, or those of several runs side by side.
    """
    if text.lstrip().startswith(("{", "[")):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:  # RecursionError: thousands of brackets
            if lines := _json_lines(text):
                return lines
            if '"log_history"' in text or '"cells"' in text:
                raise CourseError(f"{name!r} is not JSON: {error}. The file may be incomplete.") from error
        else:
            return _of_json(found, name)
    return _best([text], [text], name)


def _of_json(found: object, name: str) -> list[dict]:
    """The entries in JSON: a trainer's state, a list of entries under any name, one entry, columns, or a notebook."""
    if isinstance(found, dict):
        if isinstance(found.get("cells"), list):
            return _best(*_outputs_of(found), name)
        found = found["log_history"] if "log_history" in found else _rows_of(found) or [found]
    is_log = isinstance(found, list) and all(map(_is_dict, found))
    if is_log and (len(found) != 1 or _is_of_trainer(found[0])):
        return found
    raise CourseError(f"{name!r} is JSON, but contains no log. {_readable()}")


def _rows_of(found: dict) -> list[dict]:
    """The entries that a script of one's own saved: a list of dictionaries under some name, or a list for each metric.

    >>> _rows_of({"steps": [{"step": 1, "reward": 0.5}], "total": 1})
    [{'step': 1, 'reward': 0.5}]
    >>> _rows_of({"step": [1, 2], "reward": [0.5, 0.75]})
    [{'step': 1, 'reward': 0.5}, {'step': 2, 'reward': 0.75}]
    """
    lists = {name: value for name, value in found.items() if isinstance(value, list)}
    tables = [value for value in lists.values() if all(map(_is_dict, value)) and any(map(_has_reward, value))]
    if tables:
        return max(tables, key=len)
    if not _has_reward(lists):
        return []
    length = len(next(value for name, value in lists.items() if metric_of(name)[0] == "reward"))
    columns = {name: value for name, value in lists.items() if len(value) == length}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _json_lines(text: str) -> list[dict]:
    """The entries of JSON lines; the last one may be cut off, as while a run writes it."""
    lines, found = [line for line in text.splitlines() if line.strip()], []
    for number, line in enumerate(lines):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            if number == 0 or number < len(lines) - 1:
                return []
    return found if all(isinstance(entry, dict) for entry in found) else []


def _outputs_of(notebook: dict) -> tuple[list[str], list[str]]:
    """The texts that the cells of a notebook printed or show, and the tables that they show as HTML."""
    texts, pages = [], []
    for cell in filter(_is_dict, notebook["cells"]):
        for output in filter(_is_dict, cell.get("outputs") or ()):
            shown = output.get("data") if _is_dict(output.get("data")) else {}
            texts += [
                _joined(output.get("text")),
                *([] if "text/html" in shown else [_joined(shown.get("text/plain"))]),
            ]
            pages.append(_joined(shown.get("text/html")))
    return texts, pages


def _joined(lines: object) -> str:
    """A text of a notebook, which may be stored as lines."""
    return "".join(filter(_is_text, lines)) if isinstance(lines, list) else lines if _is_text(lines) else ""


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _best(texts: Sequence[str], pages: Sequence[str], name: str) -> list[dict]:
    """What the reader finds that finds the most steps.

    Raises:
        CourseError: none finds anything.
    """
    found = [_of_html(pages), _of_tables(texts, name), _of_printed("\n".join(texts))]
    most = max(found, key=lambda entries: (sum(map(_has_reward, entries)), len(entries)))
    if not any(map(_has_reward, most)):  # what a reward prints of each sample looks like lines of a log
        most = _of_lines(texts) or most
    if most:
        return most
    last = next((line for text in reversed(texts) for line in reversed(text.splitlines()) if line.strip()), "")
    what = f"Its last line is {last.strip()[:120]!r}. " if last else ""
    raise CourseError(f"{name!r} contains no log. {what}{_readable()}")


def _readable() -> str:
    return f"What can be read: {READABLE}. For the text of an error: grpo-check explain - < FILE."


def _has_reward(entry: dict) -> bool:
    return any(isinstance(key, str) and metric_of(key)[0] == "reward" for key in entry)


def _is_of_trainer(entry: dict) -> bool:
    return any(isinstance(key, str) and metric_of(key)[0] in _OF_A_TRAINER for key in entry)


def _of_html(pages: Sequence[str]) -> list[dict]:
    """The rows of the tables with a column of a trainer, in HTML."""
    rows = []
    for page in pages:
        if "<table" in page:
            reader = _Tables()
            reader.feed(page)
            rows += reader.rows
    return list(_below_headers(rows))


#: What is between two tables, in place of a row.
_BETWEEN = "<table>"


class _Tables(HTMLParser):
    """The cells of all tables of a page, row by row."""

    def __init__(self):
        super().__init__()
        self.rows: list[list[str]] = []
        self.is_cell = False

    def handle_starttag(self, tag: str, attrs: list) -> None:
        """A row or a cell begins."""
        if tag in ("tr", "table"):  # a row that belongs to no table is between two of them
            self.rows.append([] if tag == "tr" else [_BETWEEN])
        self.is_cell = tag in ("td", "th")
        if self.is_cell and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """A cell ends."""
        self.is_cell = False

    def handle_data(self, data: str) -> None:
        """The text of a cell."""
        if self.is_cell and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def _of_tables(texts: Sequence[str], name: str) -> list[dict]:
    """The rows of the tables in some texts, whose cells one of several signs separates.

    Raises:
        CourseError: a table has the curves of several runs.
    """
    found = [list(_below_headers(rows)) for rows in _rows_in([line for text in texts for line in text.splitlines()])]
    most = max(found, key=len, default=[])
    runs = sorted({key.rpartition(" - ")[0] for entry in most for key in entry if " - " in key})
    if len(runs) > 1:
        raise CourseError(f"{name!r} has the curves of {len(runs)} runs ({', '.join(runs)}). Export those of one run.")
    return [{key.rpartition(" - ")[2]: value for key, value in entry.items()} for entry in most]


def _rows_in(lines: list[str]) -> Iterator[list[list[str]]]:
    """The cells of all lines, separated by each sign that separates a column of a trainer from others."""
    heads = {line for line in lines if "{" not in line and re.search("reward|loss|step", line, re.IGNORECASE)}
    splits: list[Callable[[list[str]], list[list[str]]]] = [
        lambda some: list(csv.reader(some)),
        lambda some: list(csv.reader(some, delimiter=";")),
        lambda some: [line.strip("\r\n").split("\t") for line in some],
        lambda some: [line.strip().strip("|").split("|") for line in some],
        lambda some: [re.split(r"\s{2,}", line.strip()) for line in some],
    ]
    for split in splits:
        try:
            if any(_is_header(row) for row in split([*heads])):
                yield split(lines)
        except csv.Error:  # a cell of more than 131,072 characters: no table
            continue


def _is_header(row: Sequence[str]) -> bool:
    """Whether a row names columns of a trainer, next to each other."""
    names = [metric_of(cell.rpartition(" - ")[2])[0] for cell in row]
    return len(row) > 1 and bool({"reward", "loss", "step"} & {*names}) and not any(map(_is_number, row))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _below_headers(rows: Sequence[Sequence[str]]) -> Iterator[dict]:
    """The rows below a header, as entries. A row of a table that pandas printed has one cell more, its index."""
    header: Sequence[str] = ()
    for row in rows:
        if _is_header(row):
            header = [cell.strip() for cell in row]
        elif row == [_BETWEEN]:
            header = ()
        elif header and len(row) - len(header) in (0, 1) and any(map(_is_number, row)):
            own = row[1:] if len(row) > len(header) and row[-1].strip() else row
            cells = zip(header, own, strict=False)
            entry = {name: cell.strip() for name, cell in cells if name and not name.endswith(_RANGE)}
            yield {name: cell for name, cell in entry.items() if cell and not _is_gap(cell, entry)}


def _is_gap(cell: str, entry: dict[str, str]) -> bool:
    """Whether NaN stands for a metric that was not logged at this step, as pandas writes it: so does the reward's."""
    rewards = [value for name, value in entry.items() if metric_of(name.rpartition(" - ")[2])[0] == "reward"]
    return cell.lower() == "nan" and all(value.lower() in ("nan", "") for value in rewards)


def _of_printed(text: str) -> list[dict]:
    """The dictionaries that a trainer printed, with the steps that its progress bar shows, if it shows all."""
    text = _COLOR.sub("", text)
    found = [(entry, match.start()) for match in _ENTRY.finditer(text) if (entry := _pairs_in(match[0]))]
    entries = [entry for entry, _ in found]
    if steps := _steps_of_bars(text, [at for entry, at in found if _has_reward(entry)]):
        rewarded = iter(steps)
        return [entry | {"step": next(rewarded)} if _has_reward(entry) else entry for entry in entries]
    return entries


def _of_lines(texts: Sequence[str]) -> list[dict]:
    """The lines that give a reward and other metrics by name, as a callback of one's own or verl prints them.

    >>> _of_lines(["[Step 2] loss=0.01 reward=0.5 kl=0.0", "step:3 - critic/score/mean:0.410 - actor/lr:0.000"])[0]
    {'loss': '0.01', 'reward': '0.5', 'kl': '0.0', 'step': '2'}
    """
    entries = []
    for line in (line for text in texts for line in _COLOR.sub("", text).splitlines() if len(line) <= _LONGEST_LINE):
        pairs = {} if "{" in line else dict(_IN_LINE.findall(line))
        if _has_reward(pairs) and _OF_A_LINE & {metric_of(name)[0] for name in pairs}:
            step = _STEP_OF_LINE.search(line)
            entries.append(pairs | ({"step": step[1]} if step else {}))
    steps = [entry["step"] for entry in entries if "step" in entry]
    return entries if 2 * len(set(steps)) > len(steps) or not steps else []  # several lines of a step are its samples


def _pairs_in(text: str) -> dict[str, str]:
    """The metrics in a printed dictionary, if a trainer printed it."""
    if not any(f"{name}'" in text or f'{name}"' in text for name in _OF_A_TRAINER):
        return {}
    pairs = {"".join(map(str.strip, match[2].split("\n"))): match[4] or match[5] for match in _PAIR.finditer(text)}
    return pairs if _is_of_trainer(pairs) else {}


def _steps_of_bars(text: str, places: list[int]) -> list[int]:
    """The step that the bar shows before each of some places; none where these do not count upwards."""
    bars = [(match.start(), int(match[1]), int(match[2])) for match in _BAR.finditer(text)]
    if not bars or not places:
        return []
    total = Counter(most for _, _, most in bars).most_common(1)[0][0]
    own, steps, at, now = [(place, step) for place, step, most in bars if most == total], [], 0, 0
    for place in places:
        while at < len(own) and own[at][0] < place:
            now, at = own[at][1], at + 1
        steps.append(now)
    return steps if steps[0] > 0 and all(after > before for before, after in pairwise(steps)) else []
