"""``tf.train.ClusterSpec`` and ``Server``: the description of a cluster, and a server that is this
process.

Headrace runs in one process. A server's target can be given to a session of the same process;
nothing listens on the network.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.session.placement import LOCAL_TARGETS, LocalServer, check_cluster

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = ["ClusterSpec", "Server", "create_local_cluster"]


class ClusterSpec:
    """Jobs, each with its tasks' addresses.

    ``{"ps": ["host:1"], "worker": {0: "host:2"}}``, a ClusterDef, or another one.
    """

    _jobs: dict[str, dict[int, str]]

    def __init__(self, cluster: object) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = {job: dict(tasks) for job, tasks in cluster._jobs.items()}
        elif hasattr(cluster, "job"):  # a ClusterDef message
            cluster = {job.name: dict(job.tasks) for job in cluster.job}
        if not isinstance(cluster, dict):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of "
                "network addresses, or a "
                "`ClusterDef` protocol buffer"
            )
        self._jobs = {job: self._tasks(job, tasks) for job, tasks in cluster.items()}

    @staticmethod
    def _tasks(job: str, tasks: Sequence[str] | Mapping[int, Any]) -> dict[int, str]:
        if isinstance(tasks, (list, tuple)):
            found = dict(enumerate(tasks))
        elif isinstance(tasks, dict):
            found = {int(i): address for i, address in tasks.items()}
        else:
            raise TypeError(
                f"The tasks for job {job!r} must be a list or a dictionary from integers "
                "to strings."
            )
        if not all(isinstance(address, (str, bytes)) for address in found.values()):
            raise TypeError("Task address must be bytes or unicode")
        return {i: a.decode() if isinstance(a, bytes) else a for i, a in sorted(found.items())}

    @property
    def jobs(self) -> list[str]:
        return list(self._jobs)

    def as_dict(self) -> dict[str, Any]:
        """Lists of addresses where the tasks are numbered without gaps, else dictionaries."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """The ClusterDef message."""
        from tensorboard.compat.proto import cluster_pb2

        made = cluster_pb2.ClusterDef()
        for name, tasks in sorted(self._jobs.items()):
            job = made.job.add(name=name)
            for i, address in tasks.items():
                job.tasks[i] = address
        return made

    def num_tasks(self, job_name: str) -> int:
        return len(self._tasks_of(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        return list(self._tasks_of(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        tasks = self._tasks_of(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Addresses by number; None where a number is missing."""
        tasks = self._tasks_of(job_name)
        return [tasks.get(i) for i in range(max(tasks) + 1)] if tasks else []

    def _tasks_of(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"


#: Nothing listens there: the numbers tell the servers of this process apart.
_local_ports = itertools.count(40001)


class Server:
    """A server of a cluster whose tasks are all in this process.

    A cluster may have several tasks if each has a Server here; they compute as one.
    ``config`` is what sessions at this target get that have none of their own. With
    ``start=False`` no session finds the server before ``start`` is called. ``join`` waits forever,
    as a parameter server does.
    """

    def __init__(
        self,
        server_or_cluster_def: object,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: object = None,
        start: bool = True,
    ) -> None:
        cluster = ClusterSpec(server_or_cluster_def)
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError("Must specify an explicit `job_name`.")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError("Must specify an explicit `task_index`.")
            task_index = indices[0]
        address = cluster.task_address(job_name, task_index)
        self._cluster, self._job, self._task = cluster, job_name, task_index
        self._config = config
        self._target = f"{protocol or 'grpc'}://{address}"
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: object = None, start: bool = True) -> Server:
        """A server of a cluster with one worker."""
        address = f"localhost:{next(_local_ports)}"
        return Server({"local": [address]}, protocol="grpc", config=config, start=start)

    def start(self) -> None:
        """Let sessions connect."""
        tasks = {
            (job, i): a for job, found in self._cluster._jobs.items() for i, a in found.items()
        }
        LOCAL_TARGETS[self._target] = LocalServer(self._config, tasks)

    def join(self) -> None:
        """Wait until the process is ended; refused if the cluster has tasks elsewhere, which could
        never connect.
        """
        if self._target in LOCAL_TARGETS:
            check_cluster(self._target)
        threading.Event().wait()

    @property
    def target(self) -> str:
        """What to give to Session as its target."""
        return self._target

    @property
    def server_def(self) -> Tensor:
        raise NotImplementedError(
            "ServerDef messages are not in Headrace; ClusterSpec.as_cluster_def() "
            "describes the cluster."
        )


def create_local_cluster(
    num_workers: int,
    num_ps: int,
    protocol: str = "grpc",
    worker_config: object = None,
    ps_config: object = None,
) -> tuple[list[Server], list[Server]]:
    """Started servers of a cluster with jobs "worker" and "ps": the workers, the parameter servers.

    >>> workers, _ = create_local_cluster(2, 1)
    >>> Session(workers[0].target)
    """
    counts = {"worker": num_workers, "ps": num_ps}
    cluster = ClusterSpec(
        {job: [f"localhost:{next(_local_ports)}" for _ in range(n)] for job, n in counts.items()}
    )
    workers, servers = (
        [Server(cluster, job, i, protocol, config) for i in range(counts[job])]
        for job, config in (("worker", worker_config), ("ps", ps_config))
    )
    return workers, servers
