"""What the benches share: they continue where they stopped, and refuse arguments that they do not know."""

import sys

import bench_estimate
import bench_merge
import bench_rewards
import benches
import pytest


def test_a_bench_continues_where_it_stopped(tmp_path):
    path, trained = tmp_path / "rows.json", []
    wanted = [dict(variant=name, seed=seed) for seed in (0, 1) for name in "ab"]

    def train(variant: str, seed: int) -> dict:
        if len(trained) == 2:
            trained.append("interrupted")
            raise KeyboardInterrupt
        trained.append((variant, seed))
        return dict(accuracy=0.5)

    with pytest.raises(KeyboardInterrupt):
        benches.train_missing(path, wanted, train)
    stored = benches.train_missing(path, wanted, train)
    assert trained == [("a", 0), ("b", 0), "interrupted", ("a", 1), ("b", 1)]
    assert stored["rows"] == benches.read_stored(path)["rows"] == [run | dict(accuracy=0.5) for run in wanted]


@pytest.mark.parametrize("bench", [bench_estimate, bench_merge, bench_rewards], ids=lambda bench: bench.__name__)
def test_a_bench_that_stores_nothing_refuses_to_write_without_measuring(bench, monkeypatch):
    """The fault: it measured for minutes although it was told only to write, or stopped with a traceback."""
    monkeypatch.setattr(sys, "argv", [f"{bench.__name__}.py", "--write"])
    with pytest.raises(SystemExit, match="unknown argument '--write': this bench stores nothing"):
        bench.main()
