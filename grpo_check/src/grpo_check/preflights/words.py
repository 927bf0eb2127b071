"""Advice in the words of a config file: ``set use_cpu=True`` is Python, and ``set use_cpu: true`` is what to write."""

import ast
import json
import re
from collections.abc import Collection
from dataclasses import replace

import yaml

from ..findings import Finding

#: A setting as Python has it, ``name=value``, whose value is a text, a number, a word, a list or a mapping.
_SETTING = re.compile(r"\b([a-z]\w*)=('[^']*'|\[[^\]]*\]|\{[^}]*\}|-?[\w.+-]*\w)")
#: What has another name in a config file.
_RENAMED = {"lora_rank": "lora_r"}


def in_yaml(finding: Finding, names: Collection[str]) -> Finding:
    """A finding whose fixes have the settings as a config file has them.

    >>> print(*in_yaml(Finding("", "", "", fixes=("set bf16=False, or name the GPU: --gpu t4.",)), {"bf16"}).fixes)
    set bf16: false, or name the GPU: --gpu t4.
    """
    return replace(finding, fixes=tuple(_SETTING.sub(lambda one: _line(one, names), fix) for fix in finding.fixes))


def _line(setting: re.Match, names: Collection[str]) -> str:
    name, text = _RENAMED.get(setting[1], setting[1]), setting[2]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return setting[0]
    if name not in names:
        return setting[0]
    return f"{name}: {_plain(value) if isinstance(value, str) else json.dumps(value)}"


def _plain(text: str) -> str:
    """A text without quotes, unless YAML would read something else: no is false.

    >>> _plain("sdpa"), _plain("no")
    ('sdpa', "'no'")
    """
    return text if yaml.safe_load(text) == text else repr(text)
