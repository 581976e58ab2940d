"""Networks that take little time, named `normed:rows`, `normed:images` and, without norm, `normed:plain` in tests.

Each says how it may be split across devices: a pair of layers, or layers that are split alone.
"""

from __future__ import annotations

from torch import nn


def planned(network: nn.Module, plan: dict[str, str]) -> nn.Module:
    network.tensor_plan = lambda: plan  # type: ignore[assignment]
    return network


def plain(dropout: float = 0.0) -> nn.Module:
    """Linear layers and dropout alone."""
    network = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 32),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(32, 16),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(16, 10),
    )
    return planned(network, {"1": "column", "4": "row"})


def rows(dropout: float = 0.0) -> nn.Module:
    """Normalised between linear layers, one value a row and channel."""
    network = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 24, bias=False),
        nn.BatchNorm1d(24),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(24, 16, bias=False),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Linear(16, 10),
    )
    return planned(network, {"1": "row", "5": "column"})


def images(dropout: float = 0.0) -> nn.Module:
    """Normalised after convolutions, many values a row and channel."""
    network = nn.Sequential(
        nn.Conv2d(1, 6, 5, stride=3, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 8, 3, stride=2, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(72, 10),
    )
    return planned(network, {"8": "row"})
