"""Choose and check the files that go to the Hub, upload them only when asked, and name a base as others know it.

A dry run needs neither token nor network. `huggingface_hub` itself reads the token from its own file or from HF_TOKEN.
Nothing here prints, keeps or writes the token.
"""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

PAGES = ("README.md", "LICENSE*", "Modelfile", "chat_template.jinja")
SETTINGS = ("config.json", "generation_config.json", "adapter_config.json", "special_tokens_map.json", "tokenizer*")
#: The base's own vocabulary, in which a path may be a token like any other.
VOCABULARY = ("tokenizer.json", "vocab.json", "merges.txt", "added_tokens.json")
WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.gguf")
TEXT = {".json", ".jinja", ".md", ".txt", ""}
#: The files that weights need to be loaded.
NEEDED = {
    "model*.safetensors": ("config.json", "tokenizer_config.json"),
    "adapter*.safetensors": ("adapter_config.json",),
}
#: Access tokens that are known by their beginning: of the Hub, GitHub and OpenAI. A bare key of 40 digits is not found.
_SECRET = re.compile(r"\b(?:hf_|api_org_|ghp_|github_pat_|sk-)[A-Za-z0-9_-]{20,}")
#: In a text: a path below one of the usual folders, or on a drive of Windows.
FOLDERS = "home root tmp Users content kaggle mnt workspace data scratch private Volumes opt srv var work nfs"
MACHINE_PATH = re.compile(rf"(?<![\w.:/])(?:/(?:{FOLDERS.replace(' ', '|')})/\S+|[A-Za-z]:\\\S+)")
#: In a JSON file: a value that begins like an absolute path.
ABSOLUTE = re.compile(r"(?:[A-Za-z]:[\\/]|\\\\|~/|/)[^\s/]")
#: Where a JSON file holds tokens and templates, which may begin with a slash.
TOKENS = {"added_tokens_decoder", "additional_special_tokens", "extra_special_tokens", "chat_template"}
#: Where the Hub's cache keeps a model: models--OWNER--NAME/snapshots/COMMIT.
_IN_THE_HUBS_CACHE = re.compile(r"models--([\w.-]+?)--([\w.-]+)[/\\]snapshots[/\\]")


def public_name(base: str) -> str:
    """The name of a base model for other people: its hub id, or a folder's own name without the path.

    A folder in the Hub's own cache has the id in its path.

    >>> public_name("unsloth/Qwen2.5-1.5B-Instruct"), public_name("/data/models/my-qwen"), public_name("./my-qwen/")
    ('unsloth/Qwen2.5-1.5B-Instruct', 'my-qwen', 'my-qwen')
    >>> public_name("/cache/hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de2")
    'Qwen/Qwen3-0.6B'
    """
    cached = _IN_THE_HUBS_CACHE.search(base)
    if cached:
        return f"{cached[1]}/{cached[2]}"
    return base if is_hub_id(base) else re.split(r"[/\\]", base.rstrip("/\\"))[-1]


def is_hub_id(base: str) -> bool:
    """Whether a name is ``owner/name`` and not a folder here.

    >>> is_hub_id("Qwen/Qwen3-0.6B"), is_hub_id("tiny-qwen3"), is_hub_id("./my-qwen"), is_hub_id("/data/my-qwen")
    (True, False, False, False)
    """
    return bool(re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", base)) and not Path(base).is_dir()


def publish(folder: str | Path, repo_id: str, *, dry_run: bool = True, private: bool = True) -> dict[str, int]:
    """Check the files of a model or an adapter, and upload them unless ``dry_run``.

    Returns the files and their sizes in bytes. Everything else in the folder stays on this machine. A new repository
    is ``private``, and an existing one keeps its visibility.

    Raises:
        ValueError: ``repo_id`` is not ``owner/name``; the folder holds no model that loads, or no card; a file
            holds what looks like a path of this machine or a token (see `_files_to_push`); or the upload failed.
    """
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo_id):
        raise ValueError(f"repo_id={repo_id!r} is not of the form 'owner/name'.")
    files = _files_to_push(Path(folder))
    if not dry_run:
        _upload(folder, repo_id, [file.name for file in files], private)
    return {file.name: file.stat().st_size for file in files}


def _files_to_push(folder: Path) -> list[Path]:
    """The files of a model or an adapter, checked.

    The checks: the weights have what they are loaded with, and a card; no text has a token that begins with hf_,
    api_org_, ghp_, github_pat_ or sk-; no JSON value begins like an absolute path; no other text has a path
    below one of `FOLDERS` or on a drive of Windows. The base's vocabulary is not read. A key without such a
    beginning (wandb's) is not found.
    """
    wanted = [*PAGES, *SETTINGS, *VOCABULARY, *WEIGHTS]
    files = sorted({file for pattern in wanted for file in folder.glob(pattern) if file.is_file()})
    _check_complete({file.name for file in files}, folder)
    for file in files:
        if file.suffix in TEXT and file.name not in VOCABULARY:
            _check_text(file)
    return files


def _check_complete(names: set[str], folder: Path) -> None:
    """Raise a ValueError if a model cannot be loaded from these files, or has no card."""
    if not any(fnmatch(name, weights) for name in names for weights in ("*.safetensors", "*.gguf")):
        raise ValueError(f"There are no weights in {str(folder)!r} (no .safetensors, no .gguf): nothing to push.")
    if "README.md" not in names:
        raise ValueError(f"There is no README.md in {str(folder)!r}: write the model card there.")
    for weights, needed in NEEDED.items():
        missing = set(needed) - names
        if missing and any(fnmatch(name, weights) for name in names):
            raise ValueError(
                f"{str(folder)!r} cannot be loaded: {' and '.join(sorted(missing))} missing next to the weights. "
                "Save the model and its tokenizer in the same folder."
            )


def _check_text(file: Path) -> None:
    """Raise a ValueError if a text file holds what should stay on this machine."""
    text = file.read_text(encoding="utf-8")
    if _SECRET.search(text):  # the token itself is not repeated
        raise ValueError(f"{file.name} holds what looks like an access token. Take it out, and revoke the token.")
    found = [match[0] for match in MACHINE_PATH.finditer(text)]
    if file.suffix == ".json":
        found += [value for value in _values(_as_json(file.name, text)) if ABSOLUTE.match(value)]
    if found:
        raise ValueError(f"{file.name} names a path of this machine: {found[0]!r}. Put a public name in its place.")


def _as_json(name: str, text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} is not valid JSON ({error}), so the model would not load.") from error


def _values(data: object) -> Iterator[str]:
    """All strings among the values of a JSON file, except tokens and templates."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        data = [value for key, value in data.items() if key not in TOKENS]
    for part in data if isinstance(data, list) else []:
        yield from _values(part)


def _upload(folder: str | Path, repo_id: str, names: list[str], private: bool) -> None:
    from httpx import HTTPError
    from huggingface_hub import HfApi

    hub = HfApi(token=True)
    try:
        hub.create_repo(repo_id, private=private, exist_ok=True)
        hub.upload_folder(
            repo_id=repo_id, folder_path=folder, allow_patterns=names, commit_message="Upload model and card"
        )
    except (HTTPError, OSError) as error:
        raise ValueError(f"{repo_id!r} may not be complete on the Hub. {error}") from error
