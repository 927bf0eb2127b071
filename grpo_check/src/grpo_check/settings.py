"""What a terminal or ``[tool.grpo_check]`` in pyproject.toml says about the findings of every check."""

import argparse
import tomllib
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import CourseError, did_you_mean

from .findings import Finding
from .output import FORMATS

TABLE = "tool.grpo_check"


@dataclass(frozen=True)
class Settings:
    """Which findings count, and how they are shown.

    Attributes:
        select: only these codes; all if there are none.
        ignore: not these codes.
        strict: whether a warning fails the check.
        format: one of `FORMATS`.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool = False
    format: str = FORMATS[0]

    @property
    def failing(self) -> tuple[str, ...]:
        """The severities that make a command exit with 1."""
        return ("error", "warning") if self.strict else ("error",)

    def keeps(self, finding: Finding) -> bool:
        """Whether a finding is shown and counted."""
        return finding.code not in self.ignore and (not self.select or finding.code in self.select)


def read_settings(folder: Path, given: argparse.Namespace) -> Settings:
    """The settings of the nearest pyproject.toml that has some, replaced by those of the command line.

    Raises:
        CourseError: the file, a name in it or a value cannot be used.
    """
    own = {name: vars(given)[name] for name in ("select", "ignore", "strict", "format")}
    own |= {name: _codes_in(own[name]) for name in ("select", "ignore") if own[name] is not None}
    known = {name: value for name, value in own.items() if value is not None}
    table = _table_above(folder)
    if "select" in known:
        table.pop("ignore", None)  # whoever names a code wants to see it
    settings = Settings(**{**table, **known})
    _check_codes((*settings.select, *settings.ignore))
    return settings


def _codes_in(text: str) -> tuple[str, ...]:
    """Codes that are separated by commas or blanks.

    >>> _codes_in("no_eos, leak")
    ('no_eos', 'leak')
    """
    return tuple(text.replace(",", " ").split())


def _table_above(folder: Path) -> dict:
    """The settings in the nearest pyproject.toml that has some, in this folder or in one above it."""
    for path in (above / "pyproject.toml" for above in (folder, *folder.parents)):
        if path.is_file() and (table := _table_of(path)):
            return table
    return {}


def _table_of(path: Path) -> dict:
    """The settings in one pyproject.toml; empty if it has none."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("grpo_check", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise CourseError(f"{path} cannot be read: {error}. Correct it; [{TABLE}] in it has the settings.") from error
    if not isinstance(table, dict):
        raise CourseError(f"{path}: grpo_check = {table!r} should be a table, [{TABLE}].")
    wanted = dict(select=list, ignore=list, strict=bool, format=str)
    for name, value in table.items():
        if name not in wanted:
            hint = did_you_mean(name, wanted)
            raise CourseError(f"{path}: [{TABLE}] has no setting {name!r}.{hint} Valid: {', '.join(wanted)}.")
        if not isinstance(value, wanted[name]) or (name == "format" and value not in FORMATS):
            like = dict(select='["leak"]', ignore='["pad_is_eos"]', strict="true", format='"json"')[name]
            raise CourseError(f"{path}: {name} = {value!r} in [{TABLE}] should look like {name} = {like}.")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


def _check_codes(codes: tuple[str, ...]) -> None:
    """Raise a `CourseError` for a code that no check has: it would silently select or ignore nothing."""
    if codes:
        from .explaining import rules_with  # all rules of all checks, which most commands need not load

    for code in codes:
        rules_with(str(code))
