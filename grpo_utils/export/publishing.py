"""What goes to the Hub: chosen, checked and laid out in a folder first, uploaded only when asked.

    push("outputs/run/merged", "you/tiny-grpo", staging="outputs/hub")                 # dry run
    push("outputs/run/merged", "you/tiny-grpo", staging="outputs/hub", dry_run=False)  # uploads

A dry run needs neither token nor network. The upload sends the same laid-out folder, so that what
was looked at is what is sent. A token is read by `huggingface_hub` itself, from its own file or
from HF_TOKEN; nothing here prints, keeps or writes it.
"""

import re
import shutil
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
SECRET = re.compile(r"\bhf_[A-Za-z0-9]{20,}")
MACHINE_PATH = re.compile(
    r"(?<![\w.:/])(?:/(?:home|root|tmp|Users|content|kaggle|mnt|workspace)/\S+|[A-Z]:\\\\?Users\\\S+)"
)


def push(
    folder: str | Path, repo_id: str, *, staging: str | Path, dry_run: bool = True, private: bool = True
) -> dict[str, int]:
    """Lay out what is to be uploaded in ``staging``/``repo_id``, and upload it unless ``dry_run``.

    Gives the files and their sizes in bytes. A new repository is ``private`` until you change that.

    Raises:
        CourseError: ``repo_id`` is not ``owner/name``; somebody's own files are in the way; the folder holds no
            model or no card; a file names a path of this machine or a token; there is no token or no network;
            or the Hub refuses.
    """
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo_id):
        raise CourseError(f"repo_id={repo_id!r} is not of the form 'owner/name'.")
    files = files_to_push(folder)
    laid_out = _empty_folder(Path(staging) / repo_id)
    for file in files:
        shutil.copy2(file, laid_out / file.name)
    if not dry_run:
        _upload(laid_out, repo_id, private)
    return {file.name: file.stat().st_size for file in files}


def _empty_folder(laid_out: Path) -> Path:
    """The folder, new and empty. Only what an earlier push laid out is removed: a mark beside it says so."""
    mark = laid_out.with_name(f".{laid_out.name}.laid-out-by-push")
    if laid_out.exists() and not mark.exists():
        raise CourseError(f"{str(laid_out)!r} is there already, and no push laid it out. Give another staging folder.")
    if laid_out.exists():
        shutil.rmtree(laid_out)
    laid_out.mkdir(parents=True)
    mark.touch()
    return laid_out


def files_to_push(folder: str | Path) -> list[Path]:
    """The files of a model or an adapter, checked; all else in the folder stays where it is."""
    folder = Path(folder)
    files = sorted({file for pattern in WANTED for file in folder.glob(pattern) if file.is_file()})
    names = {file.name for file in files}
    if not [name for name in names if name.endswith((".safetensors", ".gguf"))]:
        raise CourseError(f"There are no weights in {str(folder)!r} (no .safetensors, no .gguf): nothing to push.")
    if "README.md" not in names:
        raise CourseError(f"There is no README.md in {str(folder)!r}: write_card(folder, report) writes one.")
    for file in files:
        _check_text(file)
    return files


def _check_text(file: Path) -> None:
    """Raise a CourseError if a text file holds what should stay on this machine."""
    if file.suffix not in TEXT or file.name in VOCABULARY:
        return
    text = file.read_text(encoding="utf-8")
    if SECRET.search(text):  # the token itself is not repeated
        raise CourseError(f"{file.name} holds what looks like a Hub token. Take it out, and revoke the token.")
    found = MACHINE_PATH.search(text)
    if found:
        raise CourseError(
            f"{file.name} names a path of this machine: {found[0]!r}. Put a public name in its place; "
            "save_adapter does that for an adapter."
        )


def _upload(folder: Path, repo_id: str, private: bool) -> None:
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


def _why_refused(repo_id: str, status: int) -> str:
    if status == 401:
        return f"The Hub does not accept the token, so {repo_id!r} was not uploaded: renew it with `hf auth login`."
    if status == 403:
        return (
            f"The token may not write to {repo_id!r}. Use a token with write access, and your own name or an "
            "organization of yours as owner."
        )
    return f"The Hub answered {status}; {repo_id!r} may not be complete. Try again later."
