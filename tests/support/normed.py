"""Networks that take little time, named `normed:rows`, `normed:images` and, without norm, `normed:plain` in tests."""

from __future__ import annotations

from torch import nn


def plain(dropout: float = 0.0) -> nn.Module:
    """Linear layers and dropout alone."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 32),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(32, 16),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(16, 10),
    )


def rows(dropout: float = 0.0) -> nn.Module:
    """Normalised between linear layers, one value a row and channel."""
    return nn.Sequential(
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


def images(dropout: float = 0.0) -> nn.Module:
    """Normalised after convolutions, many values a row and channel."""
    return nn.Sequential(
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
