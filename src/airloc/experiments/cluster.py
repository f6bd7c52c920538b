"""Runs what is missing of a plan on a Ray cluster: the same tasks, the same results.

Data is read where the command runs; it and every result travel through Ray, so that the machines need no shared disk,
only the same airloc. Trainings ask for a GPU where the cluster has any. When a machine dies, Ray does its tasks again
elsewhere, and those whose results died with it. Every result is written to the store here as soon as it is there.
"""

import contextlib
import logging
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airloc.errors import AirlocError
from airloc.experiments.graph import CODE, Task, code_digest
from airloc.experiments.runner import READS_DATA, TRAINING, Watcher, do, run_here
from airloc.experiments.store import Files, Store, read_files, write_files

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError as error:  # pragma: no cover (the tests have it)
    raise AirlocError("Ray is not installed", "Run `pip install 'airloc[cluster]'`") from error

RETRIES = 3
"""How often a task is done again when the machine that does it dies."""

PATIENCE_S = 5.0

HERE = "local"
"""The address of a cluster of this machine alone, begun for the command and ended with it: a task a core."""


def run_on_cluster(
    tasks: Sequence[Task], store: Store, watcher: Watcher, *, address: str, command: str, namespace: str = "airloc"
) -> None:
    """Do tasks on the cluster at an address, as many at a time as it has room for."""
    with _connected(address, namespace):
        here = [task for task in tasks if task.kind in READS_DATA]
        run_here(here, store, watcher, device="cpu", command=command)
        there = [task for task in tasks if task.kind not in READS_DATA]
        pending = _submit(there, store, command)
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1)
            for reference in done:
                task = pending.pop(reference)
                store.keep_files(task, _fetch(reference, task))
                watcher.begin(task)
                watcher.end(task)


def _submit(tasks: Sequence[Task], store: Store, command: str) -> dict[Any, Task]:
    """Hand all tasks to Ray, each with references to the results it builds on; give the tasks by reference."""
    references: dict[str, Any] = {}
    gpus = ray.cluster_resources().get("GPU", 0)  # type: ignore[no-untyped-call]
    pending = {}
    for task in tasks:
        for needed in task.inputs.values():
            if needed.key not in references:
                references[needed.key] = ray.put(store.files(needed))
        results = [references[needed.key] for needed in task.inputs.values()]
        room = {"num_cpus": 1, "num_gpus": 1 if gpus and task.kind in TRAINING else 0}
        remote = ray.remote(_do_elsewhere).options(max_retries=RETRIES, name=f"{task.kind}: {task.name}", **room)
        what = (task.kind, task.name, dict(task.settings), command, code_digest(CODE[task.kind]))
        reference = remote.remote(*what, list(task.inputs), *results)
        references[task.key] = reference
        pending[reference] = task
    return pending


def _do_elsewhere(
    kind: str, name: str, settings: dict[str, Any], command: str, digest: str, roles: list[str], *results: Files
) -> Files:
    """Do a task on some machine of the cluster; give its files."""
    if code_digest(CODE[kind]) != digest:
        raise AirlocError(
            f"The machine {socket.gethostname()} has another airloc than the one that runs the command",
            "Install the same version on every machine of the cluster",
        )
    device = "cuda" if ray.get_gpu_ids() else "cpu"
    with TemporaryDirectory(prefix="airloc-") as temporary:
        folder = Path(temporary)
        inputs = {role: write_files(folder / role, files) for role, files in zip(roles, results, strict=True)}
        task = Task(kind, name, settings)
        return read_files(do(task, folder / "task", inputs, device=device, command=command, say=lambda words: None))


def _fetch(reference: Any, task: Task) -> Files:
    """The files of a result that is there; what went wrong elsewhere is told as if it had gone wrong here."""
    try:
        files: Files = ray.get(reference)
        return files
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, AirlocError):
            raise AirlocError(cause.problem, cause.cure) from None
        raise
    except RayError as error:
        raise AirlocError(
            f"The cluster could not do {task.kind} {task.name!r}: {str(error).splitlines()[0]}",
            "Mend the cluster and run the same command again; what is done is kept",
        ) from error


@contextlib.contextmanager
def _connected(address: str, namespace: str) -> Iterator[None]:
    """Be connected to a cluster."""
    _knock(address)
    board = False if address == HERE else None
    try:
        ray.init(
            address,
            namespace=namespace,
            include_dashboard=board,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _unreachable(address, str(error).splitlines()[0]) from error
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Find out at once whether anybody answers at an address, which Ray itself would wait long for."""
    if address in ("auto", HERE):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _unreachable(address, str(error)) from error


def _unreachable(address: str, why: str) -> AirlocError:
    return AirlocError(
        f"There is no Ray cluster at {address!r} ({why.rstrip('.')})",
        "Start one with `ray start --head` and give its address, or leave --ray out; what is done is kept",
    )
