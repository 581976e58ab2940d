"""Where a launcher's processes meet: the place it gave each of them, and a store that all can reach."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from escala.terms.errors import EscalaError

_MEET_S = 15.0
_WAIT_S = 3600.0


@dataclass(frozen=True)
class Place:
    """Where the launcher put this process, and where all meet."""

    rank: int
    world: int
    local_rank: int
    local_world: int
    address: str
    port: int
    store_runs: bool
    """Whether the launcher's agent already listens at the address."""

    @property
    def node(self) -> int:
        return self.rank // self.local_world


def place_of(environ: Mapping[str, str]) -> Place | None:
    """The launcher's place, or None where none was given. Raises `ENV-LAUNCHER` for a half-set environment."""
    if "RANK" not in environ and "WORLD_SIZE" not in environ:
        return None
    try:
        rank, world = int(environ["RANK"]), int(environ["WORLD_SIZE"])
        local_world = int(environ.get("LOCAL_WORLD_SIZE", world))
        local_rank = int(environ.get("LOCAL_RANK", rank % local_world))
        port = int(environ["MASTER_PORT"])
        address = environ["MASTER_ADDR"]
    except (KeyError, ValueError) as error:
        raise EscalaError(
            "ENV-LAUNCHER",
            "environment",
            f"RANK or WORLD_SIZE is set, but {error} is missing or no number",
            expected="RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them",
            next_step="unset RANK and WORLD_SIZE to let escala start the processes",
        ) from error
    return Place(
        rank, world, local_rank, local_world, address, port, environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    )


def open_store(place: Place) -> Any:
    """The launcher's store. Raises `ENV-ADDR` or `ENV-PORT` within 15 s where it cannot be reached or opened."""
    import torch.distributed as dist

    _check_address(place)
    serve = place.rank == 0 and not place.store_runs
    options: dict[str, Any] = {}
    if serve:
        options["master_listen_fd"] = _listen(place)
    try:
        return dist.TCPStore(  # type: ignore[attr-defined]
            place.address,
            place.port,
            place.world,
            serve,
            timeout=timedelta(seconds=_WAIT_S),
            **options,
        )
    except dist.DistError as error:
        raise EscalaError(
            "ENV-ADDR",
            f"{place.address}:{place.port}",
            f"rank {place.rank} could not meet the others: {str(error).splitlines()[0]}",
            next_step="check MASTER_ADDR, MASTER_PORT and the network interface",
        ) from error


def _check_address(place: Place) -> None:
    try:
        socket.getaddrinfo(place.address, place.port)
    except OSError as error:
        raise EscalaError(
            "ENV-ADDR",
            f"MASTER_ADDR={place.address}",
            f"the host name cannot be resolved: {error.strerror or error}",
            expected="an address that every node can reach",
            next_step="set MASTER_ADDR to the first node's address",
        ) from error
    if place.rank == 0:
        return
    until = time.monotonic() + _MEET_S
    while True:
        try:
            socket.create_connection((place.address, place.port), timeout=2).close()
            return
        except OSError as error:
            if time.monotonic() > until:
                raise EscalaError(
                    "ENV-ADDR",
                    f"{place.address}:{place.port}",
                    f"rank {place.rank} could not connect within {_MEET_S:g} s: {error.strerror or error}",
                    next_step="check that rank 0 runs and that no firewall is between",
                ) from error
            time.sleep(0.2)


def _listen(place: Place) -> int:
    """A socket that listens at the address itself, and nowhere else; its descriptor."""
    family, kind, _, _, where = socket.getaddrinfo(place.address, place.port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
    except OSError as error:
        listener.close()
        raise EscalaError(
            "ENV-PORT",
            f"{place.address}:{place.port}",
            f"the port cannot be opened: {error.strerror}{_holder(place.port)}",
            next_step="set MASTER_PORT to a free port",
        ) from error
    listener.listen(place.world + 8)
    return listener.detach()


def _holder(port: int) -> str:
    import psutil

    try:
        held = [link.pid for link in psutil.net_connections("tcp") if link.laddr and link.laddr.port == port]
        pid = next(pid for pid in held if pid)
        return f"; process {pid} ({psutil.Process(pid).name()}) holds it"
    except (psutil.Error, StopIteration):
        return "; another process holds it"
