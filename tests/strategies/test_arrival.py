"""Gradients of what came from another stage."""

from __future__ import annotations

import torch
from torch import nn

from escala.strategies.arrival import Arrivals


def test_gradients_are_those_of_a_leaf_even_where_the_first_layer_works_in_place() -> None:
    values = torch.randn(5, 4)
    leaf = values.clone().requires_grad_()
    (nn.functional.relu(leaf) * values).sum().backward()
    arrivals = Arrivals()
    begun = arrivals.begin(values.clone(), learns=True)
    (nn.functional.relu(begun, inplace=True) * values).sum().backward()
    (found,) = arrivals.gradients([0])
    assert torch.equal(found, leaf.grad)


def test_what_does_not_learn_is_left_alone_and_what_was_not_used_gets_zeros() -> None:
    arrivals = Arrivals()
    mask = torch.ones(3, dtype=torch.bool)
    assert arrivals.begin(mask, learns=False) is mask
    unused = arrivals.begin(torch.ones(2, 3), learns=True)
    used = arrivals.begin(torch.ones(3), learns=True)
    assert unused.requires_grad
    used.sum().backward()
    first, second = arrivals.gradients([1, 2])
    assert torch.equal(first, torch.zeros(2, 3))
    assert torch.equal(second, torch.ones(3))
