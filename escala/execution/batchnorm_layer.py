"""What our own batch normalisations have in common: they take a layer of torch over, name for name."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from escala.execution.piece import Piece


class Layer(nn.Module, ABC):
    """Parameters and buffers of `taken`, under the same names, so that a checkpoint fits both.

    Inputs [rows, channels, ...] -> outputs of the same shape. In evaluation it is `taken`.
    """

    weight: nn.Parameter | None
    bias: nn.Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(self, taken: _BatchNorm, piece: Piece) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = taken.num_features, taken.eps, taken.momentum
        self.piece = piece
        self.register_parameter("weight", taken.weight)
        self.register_parameter("bias", taken.bias)
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, getattr(taken, name))
        self.training = taken.training

    @abstractmethod
    def train_on(self, inputs: Tensor) -> Tensor:
        """Normalise by statistics of the rows themselves and note these."""

    def forward(self, inputs: Tensor) -> Tensor:
        """[rows, channels, ...] -> the same shape."""
        return self.train_on(inputs) if self.training else self.judge(inputs)

    def judge(self, inputs: Tensor) -> Tensor:
        """Normalised by the running statistics; without any, by those of these very rows, as torch does."""
        return functional.batch_norm(
            inputs,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training=self.running_mean is None,
            eps=self.eps,
        )

    def counted(self) -> float | Tensor:
        """Count one more update, and return the part that its statistics have in the running ones.

        That is `momentum`, or, where it is None, one over the number of updates.
        """
        assert self.num_batches_tracked is not None
        assert self.running_mean is not None
        self.num_batches_tracked.add_(1)
        if self.momentum is not None:
            return self.momentum
        return self.num_batches_tracked.to(self.running_mean.dtype).reciprocal()

    def extra_repr(self) -> str:
        """As torch shows its own."""
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
