"""The table of peers. A peer's package is imported when the peer is loaded, and not before."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from escala.terms.experiment import Optimizer

if TYPE_CHECKING:
    from escala.peers.base import Peer


@dataclass(frozen=True)
class Kind:
    """A peer as plans know it.

    `peer` is `module:class`; `packages` are the modules that it imports. `optimizers` and `decay` (weight decay) are
    what it can be asked for. `translated`: it takes the network layer by layer, so not every network. `several`: it
    drives several devices. `environment` is set before its packages are imported.
    """

    peer: str
    packages: tuple[str, ...] = ()
    optimizers: tuple[Optimizer, ...] = ("sgd", "adam", "adamw")
    decay: bool = True
    translated: bool = False
    several: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


PEERS: dict[str, Kind] = {
    "plain": Kind("escala.peers.plain:Plain"),
    "lightning": Kind("escala.peers.lightning:Lightning", ("lightning",)),
    "accelerate": Kind("escala.peers.accelerate:Accelerated", ("accelerate",)),
    "keras": Kind(
        "escala.peers.keras:Keras",
        ("tensorflow", "keras"),
        optimizers=("sgd",),
        decay=False,
        translated=True,
        several=True,
        environment={"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2"},
    ),
    "jax": Kind(
        "escala.peers.jax:Jax",
        ("jax",),
        optimizers=("sgd",),
        translated=True,
        # Else it takes most of the device's memory at once, and a peak would say nothing.
        environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    ),
}


def missing(name: str) -> tuple[str, ...]:
    """Packages of this peer that are not installed; nothing is imported to find out."""
    return tuple(package for package in PEERS[name].packages if find_spec(package) is None)


def load(name: str) -> type[Peer]:
    """The peer itself, with its packages. Raises ImportError where they are missing."""
    kind = PEERS[name]
    os.environ.update(kind.environment)
    module, _, own = kind.peer.partition(":")
    found: type[Peer] = getattr(importlib.import_module(module), own)
    return found
