"""Which settings TRL has, read from its source: importing TRL takes ten seconds or more, which is long for a typo."""

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

#: The files with the classes whose fields are settings, base classes first, as a later class changes defaults.
FILES = (
    ("transformers", "training_args.py"),
    ("trl", "trainer/base_config.py"),
    ("trl", "trainer/grpo_config.py"),
    ("trl", "trainer/model_config.py"),
)
CLASSES = {"TrainingArguments", "_BaseConfig", "GRPOConfig", "ModelConfig"}
#: What Unsloth adds to `GRPOConfig` on a GPU.
OF_UNSLOTH = ("vllm_sampling_params", "unsloth_num_chunks")
WORDS = {"true": True, "t": True, "yes": True, "y": True, "1": True}
WORDS |= {"false": False, "f": False, "no": False, "n": False, "0": False}


class Field(NamedTuple):
    """A setting: the types that it may have as TRL writes them ("int | None"), its default, and its class."""

    kind: str
    default: object
    owner: str

    @property
    def kinds(self) -> set[str]:
        """The types other than None."""
        return {part.strip() for part in self.kind.split("|")} - {"None"}

    def read(self, value: object) -> object:
        """A value as this type if it is a number or a switch, else as it is; `ValueError` says what is wanted.

        >>> Field("int | None", 8, "").read("40"), Field("bool", True, "").read("no"), Field("str", "", "").read("no")
        (40, False, 'no')
        """
        wanted = {"int": "an integer", "float": "a number", "bool": "true or false"}
        [kind] = self.kinds if len(self.kinds) == 1 else [""]
        if kind not in wanted or value is None:
            return value
        try:
            if kind == "bool":
                return value if isinstance(value, bool) else WORDS[str(value).lower()]
            if isinstance(value, bool | list | dict):
                raise ValueError
            return int(value) if kind == "int" else float(value)
        except (ValueError, KeyError):
            usual = {"int": 8, "float": 0.5}.get(kind) if self.default in (None, -1) else self.default
            such = "" if kind == "bool" else f", such as {as_yaml(usual)}"
            raise ValueError(f"it must be {wanted[kind]}{such}") from None


def as_yaml(number: float) -> str:
    """A number as YAML reads it: it takes 1e-06, without a dot, for a text.

    >>> as_yaml(1e-06), as_yaml(0.5), as_yaml(200)
    ('1.0e-6', '0.5', '200')
    """
    digits, e, power = repr(number).partition("e")
    return f"{digits if '.' in digits else f'{digits}.0'}e{int(power)}" if e else digits


@cache
def of_trl() -> dict[str, Field]:
    """The fields of TRL's `GRPOConfig` and `ModelConfig` by name. A default that is computed is None here."""
    found = {name: Field("object", None, "GRPOConfig") for name in OF_UNSLOTH}
    for package, file in FILES:
        spec = find_spec(package)
        if spec is None:
            raise SystemExit(f"Error: {package} is not installed: pip install -r requirements.txt.")
        for one in ast.parse(Path(spec.origin).parent.joinpath(file).read_text(encoding="utf-8")).body:
            if isinstance(one, ast.ClassDef) and one.name in CLASSES:
                fields = [node for node in one.body if isinstance(node, ast.AnnAssign)]
                found |= {f.target.id: Field(ast.unparse(f.annotation), _default(f.value), one.name) for f in fields}
    return found


def _default(value: ast.expr | None) -> object:
    """The default of a field, of ``x: int = 1`` and of ``x: int = field(default=1)``."""
    if isinstance(value, ast.Call):
        value = next((word.value for word in value.keywords if word.arg == "default"), None)
    try:
        return ast.literal_eval(value) if value is not None else None
    except ValueError:
        return None
