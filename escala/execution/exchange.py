"""How DDP exchanges gradients: size of its buckets, what is made of them before, and what it may take for granted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

FIRST_BUCKET_MB = 1
"""Size of DDP's first bucket, whatever that of the others, so that it may be sent soon."""
POWERSGD_RANK = 1
"""Rank of the matrices that stand for a gradient, as in the paper's smallest setting and PyTorch's default."""
POWERSGD_START = 10
"""Steps that PowerSGD exchanges whole, before it begins. PyTorch's 1,000 are more than most measurements make."""


def asked(execution: ExecutionSpec) -> tuple[str, ...]:
    """The keys that bear on DDP's exchange alone, as they stand in an experiment, where they are not at rest."""
    found = []
    if execution.bucket_mb is not None:
        found.append(f"bucket_mb = {execution.bucket_mb:g}")
    if execution.compression != "none":
        found.append(f"compression = {execution.compression}")
    if execution.static_graph:
        found.append("static_graph = true")
    if execution.overlap != "backward":
        found.append(f"overlap = {execution.overlap}")
    return tuple(found)


def refuse_exchange(execution: ExecutionSpec, why: str) -> None:
    """Raises `Unfit` where keys of DDP's exchange are set for what has none; `why` begins the reason."""
    if found := asked(execution):
        takers = "ddp and zero1 take" if execution.overlap == "backward" else "ddp takes"
        raise Unfit(f"{why}, so {' and '.join(found)} would change nothing; only {takers} {_them(found)}")


def check_exchange(execution: ExecutionSpec, kind: str) -> None:
    """Raises `Unfit` for what DDP cannot do on devices of this kind, or not together."""
    if execution.compile and (execution.bucket_mb or FIRST_BUCKET_MB) < FIRST_BUCKET_MB:
        raise Unfit(
            f"compile cuts the network where DDP's buckets end, the first of which holds {FIRST_BUCKET_MB} MiB; "
            f"bucket_mb = {execution.bucket_mb:g} is less"
        )
    if execution.overlap == "optimizer":
        if len(others := asked(execution)) > 1:
            raise Unfit(f"{' and '.join(others)}: the last exchanges without DDP, to which the rest would belong")
        if execution.unused == "detect":
            raise Unfit("unused = detect is DDP's, and overlap = optimizer exchanges without it")
    if execution.static_graph and execution.microbatch is not None:
        raise Unfit("static_graph and microbatches do not go together: DDP takes every pass for a step with exchange")
    if execution.compression == "bf16" and kind not in ("cuda", "xpu"):
        raise Unfit(f"compression = bf16 is sent by NCCL and XCCL alone, and {kind} has neither; use fp16")


def ddp_arguments(execution: ExecutionSpec) -> dict[str, Any]:
    """What `DistributedDataParallel` is made with."""
    found: dict[str, Any] = {}
    if execution.bucket_mb is not None:
        found["bucket_cap_mb"] = execution.bucket_mb
    if execution.static_graph:
        found["static_graph"] = True
    return found


def compress(wrapped: DistributedDataParallel, execution: ExecutionSpec) -> None:
    """Have gradients made smaller before they are exchanged.

    `fp16`, `bf16`: sent in 16 bits. `powersgd`: as products of narrow matrices, what is lost being added to the next
    step's gradient (Vogels et al., arXiv:1905.13727); that rest is not part of a checkpoint.
    """
    if execution.compression == "none":
        return
    if execution.compression == "powersgd":
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

        state = powerSGD_hook.PowerSGDState(
            process_group=None,
            matrix_approximation_rank=POWERSGD_RANK,
            start_powerSGD_iter=POWERSGD_START,
        )
        wrapped.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    hooks = {"fp16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook}
    wrapped.register_comm_hook(None, hooks[execution.compression])


def _them(found: tuple[str, ...]) -> str:
    return "it" if len(found) == 1 else "them"
