"""Upload a trained model to the Hub. Without --yes, it only checks the files and prints what would be uploaded.

python -m grpo_run.push outputs/basic you/my-model               an adapter, if its base is on the Hub
python -m grpo_run.push outputs/basic/merged you/my-model --yes  a merged model, to a new private repository
"""

import argparse
import sys
from pathlib import Path

from grpo_core.training.publishing import is_hub_id, publish

from .trained import base_of, model_in


def main(arguments: list[str] | None = None) -> None:
    """Check the files of a model, print them, and upload them if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m grpo_run.push", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the output_dir of a finished run, or a merged model")
    parser.add_argument("repository", help="owner/name on the Hub; a new one is private")
    parser.add_argument("--yes", action="store_true", help="upload")
    given = parser.parse_args(arguments)
    model = model_in(given.folder)
    base = base_of(model)
    if base and not is_hub_id(base):
        raise SystemExit(
            f"Error: {model} is an adapter for {base}, a folder that nobody else has. Merge it, and push the merged "
            f"model: python -m grpo_run.merge {given.folder.as_posix()}"
        )
    try:
        files = publish(model, given.repository, dry_run=not given.yes)
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
    for name, size in files.items():
        print(f"{size / 1e6:10.2f} MB  {name}")
    if given.yes:
        print(f"uploaded to https://huggingface.co/{given.repository}")
    else:
        print(f"Nothing was uploaded. Read README.md, the model card, in {model}; then add --yes.")


if __name__ == "__main__":
    main(sys.argv[1:])
