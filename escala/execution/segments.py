"""Whether a network has parts that can pass again. No torch: plans are made with it."""

from __future__ import annotations


def no_blocks(many: int) -> str:
    """Why a network of so few blocks cannot be checkpointed, and what to add."""
    return (
        f"activation_checkpointing goes over all blocks but the last, and this network has {many}; give its "
        "Workload a method blocks(model) that names the parts that pass one after the other"
    )
