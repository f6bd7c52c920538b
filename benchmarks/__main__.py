"""Run all benchmarks, or those named, and print one table: `python -m benchmarks [belief_evaluation ...]`."""

import argparse
import os

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import (
    airloc_evaluation,
    belief_evaluation,
    belief_grids,
    evaluation,
    game_load,
    map_load,
    synthetic,
    tensor_env,
    training,
    training_gpu,
)

MODULES = (
    tensor_env,
    evaluation,
    synthetic,
    airloc_evaluation,
    belief_evaluation,
    belief_grids,
    training,
    training_gpu,
    game_load,
    map_load,
)
BENCHMARKS = {module.__name__.removeprefix("benchmarks."): module.run for module in MODULES}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks and print one table.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(BENCHMARKS)}")
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := ", ".join(name for name in names if name not in BENCHMARKS):
        parser.error(f"there is no benchmark {unknown}; benchmarks are {', '.join(BENCHMARKS)}")
    table = Table("what", "measured", "aim", "ratio to floor or peer", title="Benchmarks")
    for name in names:
        for row in BENCHMARKS[name]():
            table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(f"{os.cpu_count()} cores, torch {torch.__version__} with {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
