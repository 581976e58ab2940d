"""Parts of residual networks, as in He, Zhang, Ren, Sun: Deep residual learning for image recognition (2015)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class BasicBlock(nn.Module):
    """relu(x + f(x)), where f is two 3x3 convolutions, each batch-normalised, with a ReLU between.

    [n, before, h, w] -> [n, after, h / stride, w / stride], rounded up. Where the shapes differ, x goes through a
    batch-normalised 1x1 convolution (the paper's option B).
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *normalised(before, after, 3, stride),
            nn.ReLU(inplace=True),
            *normalised(after, after, 3),
        )
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*normalised(before, after, 1, stride))
        self.activation = nn.ReLU(inplace=True)

    def forward(self, before: Tensor) -> Tensor:
        """[n, before, h, w] -> [n, after, h / stride, w / stride]."""
        after: Tensor = self.activation(self.residual(before) + self.shortcut(before))
        return after


def normalised(before: int, after: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    """A convolution that keeps height and width but for its stride, and its batch normalisation.

    Without a bias, which the normalisation would take away.
    """
    convolution = nn.Conv2d(before, after, size, stride=stride, padding=size // 2, bias=False)
    return convolution, nn.BatchNorm2d(after)


def stages(blocks: Sequence[int]) -> tuple[BasicBlock, ...]:
    """Stages of 64, 128, 256, ... channels with so many blocks each; each but the first begins with stride 2."""
    made = list[BasicBlock]()
    before = 64
    for number, many in enumerate(blocks):
        after = 64 * 2**number
        for place in range(many):
            made.append(BasicBlock(before, after, 2 if number and not place else 1))
            before = after
    return tuple(made)


def head(classes: int) -> tuple[nn.Module, ...]:
    """[n, 512, h, w] -> logits [n, classes]: the mean over all places and one linear layer."""
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes)


def initialised(model: nn.Module) -> nn.Module:
    """Convolutions drawn anew from a normal distribution that keeps the size of gradients (He et al. 2015)."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model
