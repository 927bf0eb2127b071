"""The packages that a check needs beyond those that come with grpo-check, because a TRL project has them."""

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

from grpo_core.errors import CourseError

#: What reads the arguments of a run, its rows and its tokenizer.
OF_A_RUN = ("torch", "transformers", "trl", "accelerate", "datasets")
#: What trains or samples a model.
OF_A_MODEL = (*OF_A_RUN, "peft")
#: What reads TRL's tables of completions.
OF_TABLES = ("numpy", "pyarrow")


def trl_is_at_least(release: str) -> bool:
    """Whether the installed TRL is of this release or newer, for what its releases do differently."""
    from packaging.version import Version  # transformers and TRL bring it

    return Version(version("trl")) >= Version(release)


def require(check: str, packages: tuple[str, ...]) -> None:
    """Stop before anything else if a check lacks a package.

    >>> require("replay", ("json", "no_such_package"))
    Traceback (most recent call last):
    ...
    grpo_core.errors.CourseError: replay needs the package 'no_such_package', not installed here. Run it in the
    environment of your TRL project, or: pip install no_such_package

    Raises:
        CourseError: a package is not installed.
    """
    if missing := [name for name in packages if find_spec(name) is None]:
        named = f"the package{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
        raise CourseError(
            f"{check} needs {named}, not installed here. Run it in the environment of your TRL project, or: "
            f"pip install {' '.join(missing)}"
        )


@cache
def sends_no_content() -> bool:
    """Whether the installed TRL may pass a message whose content is None: 0.29 to 1.0 do, after a tool call.

    Later releases put "" in its place (``parse_response`` in ``trl/chat_template_utils.py``).
    """
    if find_spec("trl") is None:
        return False
    return trl_is_at_least("0.29.0") and not trl_is_at_least("1.1.0")
