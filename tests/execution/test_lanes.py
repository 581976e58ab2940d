"""Queues beside the one that computes."""

from __future__ import annotations

import pytest
import torch

from escala.execution.lanes import HERE, lanes


def test_a_device_with_one_queue_does_at_once_what_it_is_given() -> None:
    (only,) = lanes(torch.device("cpu"), 3, ahead=True)
    assert only is HERE
    with only.begin():
        done = torch.ones(2).sum()
    only.joined()()
    assert done == 2


@pytest.mark.gpu
def test_work_goes_beside_the_current_queue_of_a_gpu_and_joins_it() -> None:
    device = torch.device("cuda:0")
    own, current = lanes(device, 2), torch.cuda.current_stream(device)
    found = torch.zeros(1 << 20, device=device)
    for lane in own:
        with lane.begin():
            beside = torch.cuda.current_stream(device)
            assert beside != current
            found += 1
        lane.joined()()
        found *= 2
    assert torch.cuda.current_stream(device) == current
    assert found.unique().tolist() == [6.0]
