"""The course's diagrams, stored as PNG files with their alt text; ``scripts/drawings`` draws them."""

from pathlib import Path

from grpo_core.errors import CourseError, did_you_mean

from .base import show_png

PICTURES = Path(__file__).parent / "pictures"


def diagram(name: str) -> None:
    """Display a diagram with its alt text: loop, advantages, reward, lora, merge, failures, path or packages.

    Raises:
        CourseError: there is no diagram of that name.
    """
    from PIL import Image

    path = PICTURES / f"{name}.png"
    if not path.is_file():
        names = sorted(picture.stem for picture in PICTURES.glob("*.png"))
        raise CourseError(
            f"There is no diagram {name!r}.{did_you_mean(name, names)} The diagrams are {', '.join(names)}."
        )
    with Image.open(path) as picture:
        show_png(path.read_bytes(), picture.text["Description"])
