"""An optimiser's state goes by names: neither the order of parameters nor a wrapper changes whose it is."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from escala.strategies.named_state import load_named_state, named_state, same_storages
from escala.terms.errors import EscalaError


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Linear(3, 3)
        self.other = nn.Linear(3, 3)


def trained(network: Network) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    for number, parameter in enumerate(network.parameters()):
        parameter.grad = torch.full_like(parameter, float(number + 1))
    optimizer.step()
    return optimizer


def test_state_follows_the_name_not_the_number() -> None:
    network, other = Network(), Network()
    state = named_state(trained(network), network)
    assert set(state["state"]) == {"module.weight", "module.bias", "other.weight", "other.bias"}
    # The same parameters, given to the optimiser in another order.
    backwards = torch.optim.AdamW(list(reversed(list(other.parameters()))), lr=0.5)
    load_named_state(backwards, other, state)
    taken = named_state(backwards, other)
    for name, values in state["state"].items():
        assert torch.equal(taken["state"][name]["exp_avg"], values["exp_avg"])
        assert torch.equal(backwards.state[other.get_parameter(name)]["exp_avg"], values["exp_avg"])
    assert backwards.param_groups[0]["lr"] == 0.1
    assert taken["groups"][0]["params"] == ["other.bias", "other.weight", "module.bias", "module.weight"]


def test_a_state_of_other_parameters_is_refused_by_name() -> None:
    network = Network()
    optimizer = trained(network)
    state = named_state(optimizer, network)
    state["groups"][0]["params"] = ["weight" if name == "module.weight" else name for name in network.state_dict()]
    with pytest.raises(EscalaError, match=r"CKPT-KEYS.* weight is unexpected"):
        load_named_state(optimizer, network, state)
    state = named_state(optimizer, network)
    state["state"]["planted"] = {}
    with pytest.raises(EscalaError, match=r"CKPT-KEYS.*planted is unexpected"):
        load_named_state(optimizer, network, state)


def test_parameters_grouped_in_another_way_are_refused() -> None:
    network = Network()
    optimizer = trained(network)
    apart = torch.optim.AdamW([{"params": network.module.parameters()}, {"params": network.other.parameters()}])
    with pytest.raises(EscalaError, match=r"CKPT-KEYS.*grouped in another way"):
        load_named_state(apart, network, named_state(optimizer, network))


def test_a_state_is_copied_to_where_the_old_one_lies_and_what_it_lacks_becomes_nothing() -> None:
    network = Network()
    optimizer = trained(network)
    early = deepcopy(named_state(optimizer, network))
    nothing = {**deepcopy(early), "state": {}}
    places = {id(value) for values in optimizer.state.values() for value in values.values()}
    rate = optimizer.param_groups[0]["lr"] = torch.tensor(0.1)
    optimizer.step()
    for state in (early, nothing):
        with same_storages(optimizer):
            load_named_state(optimizer, network, state)
        assert {id(value) for values in optimizer.state.values() for value in values.values()} == places
        assert optimizer.param_groups[0]["lr"] is rate
        for name, values in named_state(optimizer, network)["state"].items():
            for key, value in values.items():
                given = state["state"].get(name, {}).get(key, torch.zeros_like(value))
                assert torch.equal(value, given), (name, key)
    assert named_state(optimizer, network)["groups"][0]["lr"] == pytest.approx(0.1)
