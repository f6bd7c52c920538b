"""Run all benchmarks and print one table: `python -m benchmarks`."""

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

BENCHMARKS = (
    tensor_env.run,
    evaluation.run,
    synthetic.run,
    airloc_evaluation.run,
    belief_evaluation.run,
    belief_grids.run,
    training.run,
    training_gpu.run,
    game_load.run,
    map_load.run,
)


def main() -> None:
    table = Table("what", "measured", "aim", "ratio to floor or peer", title="Benchmarks")
    for benchmark in BENCHMARKS:
        for row in benchmark():
            table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(f"{os.cpu_count()} cores, torch {torch.__version__} with {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
