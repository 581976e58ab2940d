"""One seat of the test of sums in shared memory: `python shared_seat.py SEATS RANK FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from escala.execution.shared_sum import SharedSum
from escala.run.group import leave, meet
from escala.terms.errors import EscalaError
from escala.terms.trial import Seat

SHAPES = ((5, 3), (), (129,), (4, 3, 3, 2))
FORMATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
STEPS = 50


def parameters() -> list[nn.Parameter]:
    """Of every shape in every format, and one whose channels lie together."""
    plain = [nn.Parameter(torch.zeros(shape, dtype=kind)) for kind in FORMATS for shape in SHAPES]
    return [*plain, nn.Parameter(torch.zeros(SHAPES[-1]).to(memory_format=torch.channels_last))]


def gradient(rank: int, step: int, number: int, parameter: Tensor) -> Tensor:
    drawn = torch.Generator().manual_seed(1000 * rank + 100 * step + number)
    return torch.randn(parameter.shape, generator=drawn).to(parameter.dtype)


def main() -> None:
    size, rank, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    meet([Seat(other, 0, ("cpu",), (0, 1), 1) for other in range(size)], rank, folder, 60.0, needs_group=True)
    trained = parameters()
    exchange = SharedSum(trained, rank, size)
    sums = dict[str, np.ndarray]()
    for step in range(STEPS):
        for number, parameter in enumerate(trained):
            parameter.grad = gradient(rank, step, number, parameter)
        exchange()
        for number, parameter in enumerate(trained):
            assert parameter.grad is not None
            sums[f"{step} {number}"] = parameter.grad.double().clone().numpy()
            # As clipping does, and only on one seat: what another holds must not change.
            if rank == 0:
                parameter.grad.mul_(3)

    some = parameters()
    finding = SharedSum(some, rank, size, detect=True)
    for turn in range(3):
        for parameter in some:
            parameter.grad = None
        some[0].grad = torch.ones_like(some[0])
        if rank == turn % size:
            some[2].grad = torch.full_like(some[2], 2.0)
        finding()
        assert [number for number, parameter in enumerate(some) if parameter.grad is not None] == [0, 2]
        assert some[0].grad.eq(size).all()
        assert some[2].grad.eq(2).all()

    words = ""
    trained[0].grad = None
    try:
        exchange()
    except EscalaError as error:
        words = str(error)
    # Rank 0 alone comes to the last sum, and waits in vain.
    for number, parameter in enumerate(some):
        parameter.grad = gradient(rank, 0, number, parameter)
    finding.wait_s = 0.05
    late = ""
    try:
        if rank == 0:
            finding()
    except EscalaError as error:
        late = str(error)
    np.savez(folder / f"{rank}.npz", **sums, missing=np.array(words), late=np.array(late))
    leave()


if __name__ == "__main__":
    main()
