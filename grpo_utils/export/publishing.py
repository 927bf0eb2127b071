"""Push a model or an adapter to the Hub: a dry run by default, and only the files that loading it needs.

push("outputs/run/merged", "you/tiny-grpo")                 # dry run
push("outputs/run/merged", "you/tiny-grpo", dry_run=False)  # uploads
"""

from pathlib import Path

from grpo_core.errors import CourseError
from grpo_core.training import publishing


def push(folder: str | Path, repo_id: str, *, dry_run: bool = True, private: bool = True) -> dict[str, int]:
    """Check the files of a model or an adapter, and upload them unless ``dry_run``.

    `grpo_core.training.publishing` says what is checked, and what is uploaded.

    Raises:
        CourseError: the folder holds something that cannot or should not be uploaded, or the upload failed.
    """
    try:
        return publishing.publish(folder, repo_id, dry_run=dry_run, private=private)
    except ValueError as error:
        raise CourseError(str(error)) from error
