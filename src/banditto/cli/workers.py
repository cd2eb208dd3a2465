"""Where the work is done: `--jobs` processes of this machine, or the workers of `--cluster`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import NamedTuple

from banditto.cli import parameters
from banditto.core.errors import InvalidArgument


class Workers(NamedTuple):
    """Checked flags; nothing is started before `opened`."""

    jobs: int
    address: str | None

    @classmethod
    def of(cls, jobs: str | None, cluster: str | None, gpu: bool = False) -> Workers:
        """From flags, of which one is enough; the environment's jobs give way to any."""
        if gpu and cluster is not None:
            raise InvalidArgument("cluster", cluster, "none with --gpu, which plays on this machine")
        if gpu and jobs is None:
            return cls(1, None)
        if cluster is None:
            text = (os.environ.get("BANDITTO_JOBS") or "1") if jobs is None else jobs
            return cls(parameters.count(text, "jobs"), None)
        from banditto.engine.dask_cluster import checked_address

        if jobs is not None:
            raise InvalidArgument("jobs", jobs, "none, because the workers of --cluster do the work")
        return cls(1, checked_address(cluster))

    @contextmanager
    def opened(self) -> Iterator[Executor | None]:
        """The cluster's executor; None where processes of this machine work."""
        if self.address is None:
            yield None
            return
        from banditto.engine.dask_cluster import cluster

        with cluster(self.address) as executor:
            yield executor
