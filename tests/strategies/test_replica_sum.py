"""Gradients of replicas are sent in buckets that leave none out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from escala.strategies.replica_sum import ReplicaSum, buckets
from escala.terms.errors import EscalaError


@given(st.lists(st.tuples(st.integers(1, 40), st.sampled_from([torch.float32, torch.float64])), max_size=20))
def test_buckets_hold_every_gradient_once_and_one_format_each(kinds: list[tuple[int, torch.dtype]]) -> None:
    grads = [torch.empty(size, dtype=dtype) for size, dtype in kinds]
    found = buckets(grads, 128)
    assert sorted(id(grad) for bucket in found for grad in bucket) == sorted(id(grad) for grad in grads)
    for bucket in found:
        assert len({grad.dtype for grad in bucket}) == 1
        assert len(bucket) == 1 or sum(grad.nbytes for grad in bucket) <= 128


def test_the_sum_of_one_replica_is_its_own_and_a_missing_gradient_is_told(tmp_path: Path) -> None:
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        one, other = nn.Parameter(torch.zeros(2, 3).t()), nn.Parameter(torch.zeros(4))
        one.grad = torch.arange(6.0).view(2, 3).t()
        assert dist.group.WORLD is not None
        with pytest.raises(EscalaError, match="MODEL-UNUSED"):
            ReplicaSum([one, other], dist.group.WORLD, detect=False)()
        ReplicaSum([one, other], dist.group.WORLD, detect=True)()
        assert one.grad.equal(torch.arange(6.0).view(2, 3).t())
        assert other.grad is None
    finally:
        dist.destroy_process_group()
