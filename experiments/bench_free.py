"""What GRPO adds to what is free: train and measure each arm, and write a section of docs/what-to-try-first.md.

    python experiments/bench_free.py               run the cells that are missing; stop and start as you like
    python experiments/bench_free.py --list        what is done, what is left, and the estimated minutes
    python experiments/bench_free.py --only ARM    the cells of one arm
    python experiments/bench_free.py --write       only write the section, from the cells that have ended

Each cell is stored in experiments/free/cells/ when it ends. Adapters and the batches of an unfinished cell are in
outputs/free/; without that folder, an unfinished cell starts from the beginning. The arms with a JSON schema need the
package of experiments/requirements.txt.
"""

import argparse
import os
from collections.abc import Sequence

import bench_checked
from benches import FIRST, put, read_stored
from free import first, stages
from free.arms import ARMS, CELLS
from free.cells import Cell, finished, run
from free.table import section

from grpo_utils.profiles import CPU, prepare_machine

PAGE, TITLE = FIRST, "What GRPO adds to what is free"


def show(cells: Sequence[Cell]) -> None:
    """A line for each cell."""
    left = 0
    for cell in cells:
        found = finished(cell)
        minutes = 0 if found else ARMS[cell.arm].minutes // (3 if cell.choice else 1)
        left += minutes
        state = (
            f"greedy {found['greedy'].count('1') / len(found['greedy']):.3f}" if found else f"about {minutes} minutes"
        )
        print(f"{'done' if found else 'left':6}{cell.name:60}{state}")
    print(f"{left} minutes left, on two idle cores (estimated)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only show what is done and what is left")
    parser.add_argument("--write", action="store_true", help="only write the section")
    parser.add_argument("--only", choices=ARMS, metavar="ARM", help=f"one of: {', '.join(ARMS)}")
    arguments = parser.parse_args()
    cells = [cell for cell in CELLS if arguments.only in (None, cell.arm)]
    if arguments.list:
        return show(cells)
    prepare_machine(CPU, threads=os.cpu_count())
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # a thread that waits leaves its core to other work
    for cell in cells if not arguments.write else ():
        if finished(cell) is None:
            print(cell.name, flush=True)
            run(cell, ARMS[cell.arm])
    put(TITLE, section(), PAGE)
    if stages.pairs():
        stages.draw()
    put(stages.TITLE, stages.section(), PAGE)
    first.write(read_stored(bench_checked.STORED)["rows"])


if __name__ == "__main__":
    main()
