"""Run tasks on a Ray cluster: the same tasks and the same results as on one machine.

The driver reads the datasets. Datasets and results travel through Ray's object store, so the machines need no shared
disk, only the same airloc. A training asks for a GPU if the cluster has any. When a machine dies, Ray runs its tasks
again on another one, and also those whose results died with it. The driver adds every result to its store as soon as
the task is finished.
"""

import contextlib
import logging
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airloc.errors import AirlocError, reason_of
from airloc.experiments.graph import Task, package_digest
from airloc.experiments.runner import KINDS, Progress, run_task, run_tasks
from airloc.experiments.store import Files, Store, read_files, write_files

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError as error:  # pragma: no cover (the tests have it)
    raise AirlocError("Ray is not installed", "Run `pip install 'airloc[cluster]'`") from error

MAX_RETRIES = 3
"""How many times Ray runs a task again after its machine died."""

_CONNECT_TIMEOUT_S = 5.0

_LOCAL = "local"
"""Address of a temporary cluster on this machine, with one task per CPU core."""


def run_on_cluster(tasks: Sequence[Task], store: Store, progress: Progress, *, address: str, command: str) -> None:
    """Run tasks on the cluster at an address, as many at a time as it has resources for."""
    with _connection(address):
        run_tasks([task for task in tasks if task.kind.reads_data], store, progress, command=command)
        pending = _submit([task for task in tasks if not task.kind.reads_data], store, command)
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1)
            for reference in done:
                task = pending.pop(reference)
                store.add_files(task, _fetch(reference, task))
                progress.started(task)
                progress.finished(task)


def check_address(address: str) -> None:
    """Connect to the address once, because Ray itself waits long for a cluster that is not there.

    Raises:
        AirlocError: If nothing answers.
    """
    if address in ("auto", _LOCAL):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _unreachable(address, str(error)) from error


def _submit(tasks: Sequence[Task], store: Store, command: str) -> dict[Any, Task]:
    """Submit all tasks with references to their inputs, and return the tasks by reference."""
    references: dict[str, Any] = {}
    gpus = ray.cluster_resources().get("GPU", 0)  # type: ignore[no-untyped-call]
    pending = {}
    for task in tasks:
        for needed in task.inputs.values():
            if needed.key not in references:
                references[needed.key] = ray.put(store.read(needed))
        results = [references[needed.key] for needed in task.inputs.values()]
        resources = {"num_cpus": 1, "num_gpus": 1 if gpus and task.kind.uses_gpu else 0}
        remote = ray.remote(_run_remotely).options(max_retries=MAX_RETRIES, name=task.title, **resources)
        settings = (task.kind.name, task.name, dict(task.settings), command, package_digest())
        reference = remote.remote(*settings, list(task.inputs), *results)
        references[task.key] = reference
        pending[reference] = task
    return pending


def _run_remotely(
    kind: str, name: str, settings: dict[str, Any], command: str, digest: str, roles: list[str], *results: Files
) -> Files:
    """Run a task on a machine of the cluster, and return the files of its result."""
    if package_digest() != digest:
        raise AirlocError(
            f"The machine {socket.gethostname()} has another airloc than the machine that runs the command",
            "Install the same version on every machine of the cluster",
        )
    device = "cuda" if ray.get_gpu_ids() else "cpu"
    with TemporaryDirectory(prefix="airloc-") as temporary:
        folder = Path(temporary)
        inputs = {role: write_files(folder / role, files) for role, files in zip(roles, results, strict=True)}
        task = Task(KINDS[kind], name, settings)
        out = run_task(task, folder / "task", inputs, device=device, command=command, report=lambda message: None)
        return read_files(out)


def _fetch(reference: Any, task: Task) -> Files:
    """Return the files of a finished task, or raise its error as if it had run here."""
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
            f"The cluster could not run the task {task.title!r}: {reason_of(error)}",
            "Repair the cluster and run the same command again; finished results are kept",
        ) from error


@contextlib.contextmanager
def _connection(address: str) -> Iterator[None]:
    """Connect to a cluster."""
    check_address(address)
    try:
        ray.init(
            address,
            namespace="airloc",
            include_dashboard=False if address == _LOCAL else None,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _unreachable(address, reason_of(error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _unreachable(address: str, reason: str) -> AirlocError:
    return AirlocError(
        f"There is no Ray cluster at {address!r} ({reason.rstrip('.')})",
        "Start one with `ray start --head` and give its address, or omit --ray; finished results are kept",
    )
