"""Look up a model before its weights are loaded: its configuration and tokenizer, in a folder, a cache or on the Hub.

"It is not there" and "we could not look" are two answers. Only the first one is a fault of the run.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

#: Seconds that the Hub may take to answer before it counts as out of reach. Its own client tries for half a minute.
PATIENCE = 5.0
#: What stands in published scripts in place of a name.
_PLACEHOLDER = re.compile(r"[<>{}$]|\bpath[-_/]to(?![A-Za-z])|\byour[-_]", re.IGNORECASE)


class UnreachableError(CourseError):
    """Whether a model is there is not known, because nobody could be asked."""


@dataclass(frozen=True)
class Model:
    """What is known of a model.

    Attributes:
        name: its name on the Hub or its folder; "" if it has none.
        config: its configuration, if that could be read.
        fault: why it cannot be loaded.
        unseen: why it could not be looked up.
    """

    name: str = ""
    config: "PretrainedConfig | None" = None
    fault: str = ""
    unseen: str = ""

    @property
    def is_folder(self) -> bool:
        """Whether its name can only be that of a folder: the Hub has ``name`` and ``owner/name``."""
        return self.name.startswith((".", "/", "~")) or self.name.count("/") > 1 or "\\" in self.name


#: A run without a model.
NO_MODEL = Model()


def look_up(model: "str | Path | PretrainedConfig") -> Model:
    """What is known of a model with a name, or of a configuration. The Hub is asked at most once."""
    if not isinstance(model, str | Path):
        return Model(model.name_or_path, model)
    name = str(model)
    if _PLACEHOLDER.search(name) and not Path(name).exists():
        return Model(name, unseen=f"{name!r} stands for a model; pass --model NAME")
    try:
        return Model(name, read_config(name) if name else None)
    except UnreachableError as error:
        return Model(name, unseen=str(error))
    except CourseError as error:
        return Model(name, fault=str(error))


def read_config(model: "str | PretrainedConfig") -> "PretrainedConfig":
    """The configuration of a named model; a configuration is returned unchanged.

    Raises:
        UnreachableError: it is not here, and the Hub cannot be asked.
        CourseError: transformers cannot read it.
    """
    from transformers import AutoConfig

    return _load(AutoConfig, model) if isinstance(model, str) else model


def tokenizer_of(model: Model) -> "tuple[PreTrainedTokenizerBase | None, str]":
    """The tokenizer of a model, or why there is none."""
    from transformers import AutoTokenizer

    if not model.config:
        unseen = "the model could not be looked up" if model.unseen else "no model given"
        return None, "the model cannot be loaded" if model.fault else unseen
    try:
        tokenizer = _load(AutoTokenizer, model.name)
    except CourseError as error:
        return None, f"its tokenizer cannot be loaded: {error}"
    if len(tokenizer) <= len(tokenizer.all_special_tokens):  # where files are missing, transformers makes an empty one
        return None, f"{model.name} has no tokenizer, or it is not here and the Hub cannot be asked"
    return tokenizer, ""


def _load(kind: type, name: str) -> object:
    """What ``kind.from_pretrained`` makes of a folder, of the cache, or of the Hub if that answers."""
    here = Path(name).is_dir()
    asks = not here and hub_answers()
    try:
        return kind.from_pretrained(name, local_files_only=not asks)
    except (ValueError, KeyError, OSError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        if not here and _nobody_answered(error):
            why = reason if asks else "the Hub cannot be reached (or HF_HUB_OFFLINE is set)"
            raise UnreachableError(f"{name!r} is not on this machine, and {why}") from error
        raise CourseError(f"model={name!r} cannot be loaded: {reason}") from error


def hub_answers() -> bool:
    """Whether the Hub can be reached; its client alone would try again and again."""
    from huggingface_hub import constants, get_session

    try:
        return not constants.HF_HUB_OFFLINE and bool(get_session().head(constants.ENDPOINT, timeout=PATIENCE))
    except Exception:  # what its HTTP library raises, which differs between its releases
        return False


def _nobody_answered(error: BaseException) -> bool:
    """Whether the Hub gave no answer, or only to those who log in; "there is no such model" is an answer."""
    from huggingface_hub import errors

    absent = (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.EntryNotFoundError)
    for one in _causes(error):
        if isinstance(one, (errors.GatedRepoError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled)):
            return True
        if isinstance(one, (*absent, errors.HfHubHTTPError)):
            return not isinstance(one, absent)
    return "trust_remote_code" in str(error)  # the model's own code is not executed here


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those from which it was raised."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
