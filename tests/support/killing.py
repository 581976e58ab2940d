"""A network whose checkpoint kills somebody, once: `killing:network` in experiments of the tests.

In a seat, not in the child that looks at the network before, the chosen process is killed with SIGKILL while the
second checkpoint is made, and never again, since `once` then exists.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from escala.store import checkpoint


class Killing(nn.Module):
    def __init__(self, whom: str, once: str, dropout: float) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Dropout(dropout), nn.Linear(784, 10))
        self._whom = whom
        self._once = Path(once)
        self._write = checkpoint.write_new
        if whom == "parent" and _in_a_seat():
            checkpoint.write_new = self._dying_write

    def _dying_write(self, path: Path, data: bytes) -> None:
        earlier = [name for name in os.listdir(path.parent.parent) if name.startswith("step-")]
        if earlier and path.name == checkpoint.STATE and not self._once.exists():
            path.write_bytes(data[: len(data) // 2])
            self._once.touch()
            os.kill(os.getppid(), signal.SIGKILL)
        self._write(path, data)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        import torch.distributed as dist

        kept = Path(self._once.parent, "c", "checkpoints")
        if self._whom == "last seat" and _in_a_seat() and not self._once.exists() and any(kept.glob("step-*")):
            last = not dist.is_initialized() or dist.get_rank() == dist.get_world_size() - 1
            if last:
                self._once.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().state_dict(*args, **kwargs)

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.layer(images.flatten(1))
        return outputs


def _in_a_seat() -> bool:
    spec = sys.modules["__main__"].__spec__
    return spec is not None and spec.name == "escala.run.worker"


def network(whom: str = "nobody", once: str = "", dropout: float = 0.2) -> nn.Module:
    return Killing(whom, once, dropout)
