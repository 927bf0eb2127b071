"""Load the rewards that a config file or an option names. One that cannot be loaded is a finding and stops no check."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from grpo_core.errors import CourseError, did_you_mean

from ..probes.loading import find_reward, folders_of, imports_from
from ..probes.targets import parse_target
from .foreign import REWARDS_OF_OPEN_R1
from .planned import UnreadReward

#: Rewards that ``trl grpo`` knows by name.
OF_TRL = ("accuracy_reward", "reasoning_accuracy_reward", "think_format_reward", "get_soft_overlong_punishment")
_FIX = "write one of trl grpo's own, a dotted path such as my_rewards.my_reward, or --reward FILE.py:function."


@contextmanager
def rewards_named(names: Sequence[str], folder: Path) -> Iterator[list[Callable | UnreadReward]]:
    """The rewards of some names, which may import from their folders as long as they are used.

    Args:
        names: TRL's own names, dotted paths, or ``FILE.py:function``.
        folder: where the config file is.
    """
    found = [_found(name, folder) for name in names]
    with imports_from(*(near for name in found for near in folders_of(name)), Path.cwd(), folder):
        yield [_reward_named(name, folder) for name in found]


def _reward_named(name: str, folder: Path) -> Callable | UnreadReward:
    """A reward by its name.

    >>> _reward_named("think_format_reward", Path()).__name__
    'think_format_reward'
    >>> _reward_named("tag_count", Path()).what
    "'tag_count' is not a reward of trl grpo; it is in the registry of open-r1, which only open-r1's script reads."
    """
    from trl import rewards

    if name == "get_soft_overlong_punishment":
        return rewards.get_soft_overlong_punishment(max_completion_len=1280, soft_punish_cache=256)
    if name in OF_TRL:
        return getattr(rewards, name)
    if not {":", "."} & {*name.partition("(")[0]}:
        return _unknown(name)
    try:
        _refuse_module_elsewhere(name, folder)
        return find_reward(name)
    except CourseError as error:
        return UnreadReward(name, str(error))


def _unknown(name: str) -> UnreadReward:
    """A name that is not one of TRL's, and where it is one."""
    what = f"{name!r} is not a reward of trl grpo"
    if name in REWARDS_OF_OPEN_R1:
        own = REWARDS_OF_OPEN_R1[name]
        what += "; it is in the registry of open-r1, which only open-r1's script reads."
        return UnreadReward(name, what, f"write {own}, which is TRL's own, or a dotted path." if own else _FIX)
    return UnreadReward(name, f"{what}, which knows {', '.join(OF_TRL)}.{did_you_mean(name, OF_TRL, 0.7)}", _FIX)


def _refuse_module_elsewhere(name: str, folder: Path) -> None:
    """Raise a `CourseError` if the module of a dotted path is not here, but in a folder above the config file."""
    module = name.partition(".")[0]
    if ":" in name or not module.isidentifier() or find_spec(module):
        return
    above = next((one for one in folder.resolve().parents if (one / f"{module}.py").is_file()), None)
    if above:
        raise CourseError(
            f"reward_funcs names {name}, and {module}.py is in {str(above)!r}. trl grpo imports it only if you run it "
            "there, so change to that folder and run this command again."
        )


def _found(name: str, folder: Path) -> str:
    """``FILE.py:function`` with the file where it is: where you are, or next to the config file."""
    target = parse_target(name)
    if not target.is_file:
        return name
    near = next((one for one in (Path(target.where), folder / target.where) if one.exists()), target.where)
    return str(replace(target, where=str(near)))
