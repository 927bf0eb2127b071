"""Copy the pages that ``grpo-check explain`` searches from the repository into the wheel and the sdist.

The pages have one place, the repository. A wheel that is built from an sdist takes its copies.
"""

import runpy
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
COPIES = Path("src/grpo_check/pages")
PAGES = runpy.run_path(str(HERE / "src/grpo_check/sections.py"))["PAGES"]


def copy_pages(folder: Path) -> None:
    """Copy the pages, from the sdist or else from the repository.

    Raises:
        FileNotFoundError: neither has them, because somebody copied the folder of grpo-check alone.
    """
    source = HERE / COPIES if (HERE / COPIES).is_dir() else HERE.parent
    for page in PAGES:
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / page, folder / page)


class BuildWithPages(build_py):
    """What makes the wheel."""

    def run(self) -> None:
        """Copy the pages too, except for an editable installation, which reads them where they are."""
        super().run()
        if not self.editable_mode:
            copy_pages(Path(self.build_lib) / "grpo_check" / "pages")


class SdistWithPages(sdist):
    """What makes the sdist."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the pages next to the modules."""
        super().make_release_tree(base_dir, files)
        copy_pages(Path(base_dir) / COPIES)


setup(cmdclass={"build_py": BuildWithPages, "sdist": SdistWithPages})
