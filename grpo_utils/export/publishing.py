"""What goes to the Hub: chosen, checked and laid out in a folder first, uploaded only when asked.

    push("outputs/run/merged", "you/tiny-grpo", staging="outputs/hub")                 # dry run
    push("outputs/run/merged", "you/tiny-grpo", staging="outputs/hub", dry_run=False)  # uploads

A dry run needs neither token nor network. The second call lays the same files out again and sends that
folder. What you changed in it in between is not thrown away: the call refuses. A token is read by
`huggingface_hub` itself, from its own file or from HF_TOKEN; nothing here prints, keeps or writes it.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from ..errors import CourseError

#: Files that belong to a model; optimizer states, logs and whatever else lies there stays.
WANTED = (
    "README.md",
    "LICENSE*",
    "Modelfile",
    "adapter_config.json",
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "*.safetensors",
    "*.safetensors.index.json",
    "*.gguf",
)
TEXT = {".json", ".jinja", ".md", ".txt", ""}
#: The base's own vocabulary, in which a path may be a token like any other.
VOCABULARY = {"tokenizer.json", "vocab.json", "merges.txt", "added_tokens.json"}
#: What weights cannot be loaded without.
NEEDED = {
    "model*.safetensors": ("config.json", "tokenizer_config.json"),
    "adapter*.safetensors": ("adapter_config.json",),
}
#: Tokens that show by how they begin: of the Hub, GitHub and OpenAI. A bare key of 40 digits does not show.
SECRET = re.compile(r"\b(?:hf_|api_org_|ghp_|github_pat_|sk-)[A-Za-z0-9_-]{20,}")
#: In a text: a path below one of the usual folders, or on a drive of Windows.
FOLDERS = "home root tmp Users content kaggle mnt workspace data scratch private Volumes opt srv var work nfs"
MACHINE_PATH = re.compile(rf"(?<![\w.:/])(?:/(?:{FOLDERS.replace(' ', '|')})/\S+|[A-Za-z]:\\\S+)")
#: A value of a JSON file: whatever begins like an absolute path.
ABSOLUTE = re.compile(r"(?:[A-Za-z]:[\\/]|\\\\|~/|/)[^\s/]")
#: Where a JSON file holds tokens and templates, which may begin with a slash.
TOKENS = {"added_tokens_decoder", "additional_special_tokens", "extra_special_tokens", "chat_template"}


def push(
    folder: str | Path, repo_id: str, *, staging: str | Path, dry_run: bool = True, private: bool = True
) -> dict[str, int]:
    """Lay out what is to be uploaded in ``staging``/``repo_id``, and upload it unless ``dry_run``.

    Gives the files and their sizes in bytes. A new repository is ``private``; one that exists stays as it is.

    Raises:
        CourseError: ``repo_id`` is not ``owner/name``; somebody's own files are in the way; the folder holds no
            model that loads, or no card; a file holds what looks like a path of this machine or a token (see
            `files_to_push`); there is no token or no network; or the Hub refuses.
    """
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo_id):
        raise CourseError(f"repo_id={repo_id!r} is not of the form 'owner/name'.")
    files = files_to_push(folder)
    laid_out = _empty_folder(Path(staging) / repo_id)
    for file in files:
        shutil.copy2(file, laid_out / file.name)
    _mark(laid_out).write_text(json.dumps(_checksums(laid_out), indent=2) + "\n", encoding="utf-8")
    if not dry_run:
        _upload(laid_out, repo_id, private)
    return {file.name: file.stat().st_size for file in files}


def _empty_folder(laid_out: Path) -> Path:
    """The folder, new and empty. Only what an earlier push laid out, unchanged since, is removed."""
    mark = _mark(laid_out)
    if laid_out.exists() and not mark.exists():
        raise CourseError(f"{str(laid_out)!r} is there already, and no push laid it out. Give another staging folder.")
    if laid_out.exists() and json.loads(mark.read_text(encoding="utf-8")) != _checksums(laid_out):
        raise CourseError(
            f"{str(laid_out)!r} was changed after it was laid out, and would be overwritten. Make the change in the "
            "folder that is pushed, then give another staging folder or remove this one."
        )
    if laid_out.exists():
        shutil.rmtree(laid_out)
    laid_out.mkdir(parents=True)
    return laid_out


def _mark(laid_out: Path) -> Path:
    """The file beside a staged folder that says what a push put into it."""
    return laid_out.with_name(f".{laid_out.name}.laid-out-by-push")


def _checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder, by its path in it."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def files_to_push(folder: str | Path) -> list[Path]:
    """The files of a model or an adapter, checked; all else in the folder stays where it is.

    Checked is: weights with what they are loaded with, and a card; no text with a token that begins with hf_,
    api_org_, ghp_, github_pat_ or sk-; no JSON value that begins like an absolute path; no path in another text
    below one of `FOLDERS` or on a drive of Windows. The base's vocabulary is not read. A key without such a
    beginning (wandb's) is not found.
    """
    folder = Path(folder)
    files = sorted({file for pattern in WANTED for file in folder.glob(pattern) if file.is_file()})
    names = {file.name for file in files}
    if not [name for name in names if name.endswith((".safetensors", ".gguf"))]:
        raise CourseError(f"There are no weights in {str(folder)!r} (no .safetensors, no .gguf): nothing to push.")
    if "README.md" not in names:
        raise CourseError(f"There is no README.md in {str(folder)!r}: write_card(folder, report) writes one.")
    _check_complete(names, folder)
    for file in files:
        _check_text(file)
    return files


def _check_complete(names: set[str], folder: Path) -> None:
    """Raise a CourseError if the weights could not be loaded from these files."""
    for weights, needed in NEEDED.items():
        missing = set(needed) - names
        if missing and any(fnmatch(name, weights) for name in names):
            raise CourseError(
                f"{str(folder)!r} cannot be loaded: {' and '.join(sorted(missing))} missing beside the weights. "
                "save_merged and save_adapter write model and tokenizer together."
            )


def _check_text(file: Path) -> None:
    """Raise a CourseError if a text file holds what should stay on this machine."""
    if file.suffix not in TEXT or file.name in VOCABULARY:
        return
    text = file.read_text(encoding="utf-8")
    if SECRET.search(text):  # the token itself is not repeated
        raise CourseError(f"{file.name} holds what looks like an access token. Take it out, and revoke the token.")
    found = [match[0] for match in MACHINE_PATH.finditer(text)]
    if file.suffix == ".json":
        found += [value for value in _values(_as_json(file.name, text)) if ABSOLUTE.match(value)]
    if found:
        raise CourseError(
            f"{file.name} names a path of this machine: {found[0]!r}. Put a public name in its place; "
            "save_adapter does that for an adapter."
        )


def _as_json(name: str, text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise CourseError(f"{name} is no valid JSON ({error}), so the model would not load.") from error


def _values(data: object) -> Iterator[str]:
    """All strings among the values of a JSON file, but for tokens and templates."""
    if isinstance(data, str):
        yield data
    parts = data if isinstance(data, list) else []
    if isinstance(data, dict):
        parts = [value for key, value in data.items() if key not in TOKENS]
    for part in parts:
        yield from _values(part)


def _upload(folder: Path, repo_id: str, private: bool) -> None:
    import httpx
    from huggingface_hub import HfApi, constants, get_token
    from huggingface_hub.errors import HfHubHTTPError

    if constants.is_offline_mode():
        raise CourseError("HF_HUB_OFFLINE=1 forbids uploads. Unset it in a new process, and push there.")
    if get_token() is None:
        raise CourseError(
            "There is no Hub token, so nothing was uploaded. Log in once with `hf auth login`, or set HF_TOKEN to a "
            "token with write access; on Colab, put it into the notebook's secrets. Never write it into a cell."
        )
    try:
        HfApi().create_repo(repo_id, private=private, exist_ok=True)
        HfApi().upload_folder(repo_id=repo_id, folder_path=folder, commit_message="Upload model and card")
    except HfHubHTTPError as error:
        raise CourseError(_why_refused(repo_id, error.response.status_code)) from error
    except (httpx.HTTPError, OSError) as error:
        raise CourseError(
            f"The Hub could not be reached ({type(error).__name__}: {error}), so {repo_id!r} may not be complete. "
            "Check the network and push again."
        ) from error


def _why_refused(repo_id: str, status: int) -> str:
    if status == 401:
        return f"The Hub does not accept the token, so {repo_id!r} was not uploaded: renew it with `hf auth login`."
    if status == 403:
        return (
            f"The token may not write to {repo_id!r}. Use a token with write access, and your own name or an "
            "organization of yours as owner."
        )
    return f"The Hub answered {status}; {repo_id!r} may not be complete. Try again later."
