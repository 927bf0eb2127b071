"""What the statements of a file would do if they were run: only define something, or load a model and train.

    >>> def first(text):
    ...     source = source_of(Path("a.py"), ast.parse(text).body)
    ...     return costly_call(source.body[0], source) or ""
    >>> first("model, tokenizer = FastLanguageModel.from_pretrained('Qwen/Qwen3-0.6B')")
    "FastLanguageModel.from_pretrained('Qwen/Qwen3-0.6B')"
    >>> first("tokenizer = AutoTokenizer.from_pretrained('Qwen/Qwen3-0.6B')")
    ''

A tokenizer, a judge or a client of an API is part of a reward, and is loaded if the reward needs it. The policy, the
dataset and the command line are not.
"""

import ast
import builtins
import re
import sys
from pathlib import Path  # noqa: F401 (for the example)

from grpo_core.errors import CourseError

from .candidates import makes_reward
from .parts import Part
from .sources import Source, source_of  # noqa: F401 (for the example)
from .syntax import DEFINITIONS, FOR_A_MODULE, assigned, at_once, imported, missing_packages, sets_path

#: Packages that change other packages, or look for a GPU, when they are imported.
_HEAVY = {"unsloth", "unsloth_zoo", "vllm", "deepspeed"}
#: Calls that load a dataset or a policy, train, or read the command line.
_COSTLY = {
    *("load_dataset", "load_from_disk", "snapshot_download", "get_peft_model", "LLM", "AsyncLLM", "train", "fit"),
    *("parse_args", "parse_known_args", "parse_args_into_dataclasses", "parse_args_and_config", "input"),
}
#: Classes whose `from_pretrained` loads something small, or the judge of a reward.
_SMALL = re.compile(r"Tokenizer|Processor|Config$|FeatureExtractor|SequenceClassification")
#: What of Python's own library, or of its functions, does more than compute a value.
_RUNS_MORE = {"subprocess", "exec", "eval", "breakpoint", "exit", "_exit", "quit", "system", "sleep"}


def only_defines(source: Source) -> bool:
    """Whether importing a file only imports, defines, and computes with Python's own library, which is cheap."""
    run = [one for index, one in enumerate(source.body) if index not in source.guarded]
    return source.whole and all(_only_defines(one, source) for one in run)


def _only_defines(statement: ast.stmt, source: Source) -> bool:
    nodes = list(at_once(statement))
    if any(isinstance(node, ast.While) or _HEAVY & {*imported(node)} for node in nodes):
        return False
    return all(_only_computes(node, source, set()) for node in nodes if isinstance(node, ast.Call))


def _only_computes(call: ast.Call, source: Source, seen: set[str]) -> bool:
    """Whether a call stays within Python's own library and the functions of the file."""
    names = ast.unparse(call.func)
    root, last = names.partition(".")[0], names.rpartition(".")[2]
    if last in _COSTLY or {root, last} & _RUNS_MORE or root in seen:
        return root in seen and last not in _COSTLY
    defined = next((one for one in reversed(source.body) if root in assigned(one)), None)
    if isinstance(defined, ast.Import | ast.ImportFrom):
        return set(imported(defined)) <= {*sys.stdlib_module_names} - _RUNS_MORE
    if isinstance(defined, DEFINITIONS):
        calls = [node for one in _body_of(defined) for node in at_once(one) if isinstance(node, ast.Call)]
        loops = any(isinstance(node, ast.While) for one in _body_of(defined) for node in at_once(one))
        return not loops and all(_only_computes(one, source, {*seen, root}) for one in calls)
    return defined is not None or root in dir(builtins) or not root.isidentifier() or bool(seen)


def _body_of(defined: ast.stmt) -> list[ast.stmt]:
    """What runs when a function or a class is called."""
    if not isinstance(defined, ast.ClassDef):
        return defined.body
    inits = [one for one in defined.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
    return inits[0].body if inits else []


def leaves_out_packages(source: Source, part: Part) -> bool:
    """Whether a file imports other packages, or neighbors, that a part of it does not need."""
    others = [one for one in source.body if isinstance(one, ast.Import | ast.ImportFrom) and one not in part.statements]
    return any(not imported(one) or {*imported(one)} - {*sys.stdlib_module_names} for one in others)


def costly_call(statement: ast.stmt, source: Source) -> str:
    """The first call of a statement that loads a policy or a dataset, trains, or reads the command line, or nothing."""
    return _costly(statement, source, set())


def _costly(statement: ast.stmt, source: Source, seen: set[str]) -> str:
    for call in [node for node in at_once(statement) if isinstance(node, ast.Call)]:
        names = ast.unparse(call.func)
        owner, _, last = names.rpartition(".")
        if last in _COSTLY or last.endswith("Trainer") or (last == "from_pretrained" and not _SMALL.search(owner)):
            return ast.unparse(call)
        defined = [one for one in source.body if isinstance(one, DEFINITIONS) and one.name == names]
        inner = _body_of(defined[-1]) if defined and names not in seen else []
        if any(_costly(one, source, {*seen, names}) for one in inner):
            return ast.unparse(call)
    return ""


def check_part(source: Source, part: Part) -> None:
    """Raise a `CourseError` if what a reward needs would load a model, or is not here."""
    if part.unknown:
        raise CourseError(_inside(source, part))
    sets_paths = any(map(sets_path, part.statements))
    for need in part.needs.values():
        place = source.place(need.statement.lineno)
        through = "" if need.user in (part.name, need.name) else f" through {need.user}"
        if call := costly_call(need.statement, source):
            raise CourseError(
                f"{part.name} in {source.path} needs {need.name!r}{through}, and {place} would run {_short(call)} for "
                f"it. Copy the reward and what it uses into a file of their own, {_instead(need.name, call)}."
            )
        gone = [] if sets_paths else missing_packages(need.statement)
        if gone:
            raise CourseError(
                f"{part.name} in {source.path} needs the module {gone[0]!r}{through} ({place}), which is not installed "
                f"here. {FOR_A_MODULE}"
            )


def _inside(source: Source, part: Part) -> str:
    """What to do about a reward that reads the arguments of the function around it."""
    function = next(iter(part.unknown.values()))
    order = [one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)]
    names = sorted(part.unknown, key=order.index)
    listed = " and ".join(map(repr, names))
    if entry := part.added:
        maker = ast.unparse(entry.value.func) if isinstance(entry.value, ast.Call) else entry.key
        what = f"{entry.key!r} in {entry.registry} of {source.path} is made with {listed}"
        target = f"'{source.path}:{maker}(…)'"
        return f"{what}, from the call of {function.name}(). Name it with your own values, as in {target}."
    fix = f"Move {part.name} to the top level of the file, with values for {listed}."
    if makes_reward(function):
        values = ", ".join(f"{name}=…" for name in names)
        fix = f"Name that function with its values, as in '{source.path}:{function.name}({values})'."
    return f"{part.name} in {source.path} is inside {function.name}(), and needs {listed} from its call. {fix}"


def _short(call: str) -> str:
    return call if len(call) <= 60 else f"{call.partition('(')[0]}(…)"


def _instead(name: str, call: str) -> str:
    """What a file of the reward's own should have in place of a costly statement."""
    if re.search("token|processor", name, re.IGNORECASE):
        model = re.search(
            r"""from_pretrained\((?:model_name\s*=\s*|pretrained_model_name_or_path\s*=\s*)?(['"].+?['"])""", call
        )
        return f"with {name} = AutoTokenizer.from_pretrained({model[1] if model else 'MODEL'})"
    if re.search("parse|argv|input", call):
        return f"with the value that it needs of {name}"
    if re.search("load_dataset|load_from_disk", call):
        return "and let it read a column of the dataset instead"
    return f"with another value for {name}"
