"""Loops as people write them, for `benchmarks/gpu.py`: a tutorial's, and one that gets the most out of a card.

Each function returns what makes so many steps and returns their seconds, from idle device to idle device.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from gpu_works import Work
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.utils.data import DataLoader, TensorDataset

from escala.execution.precision import set_flags
from escala.execution.synchronise import synchroniser

Run = Callable[[int], float]
Batches = Iterator[tuple[Tensor, Tensor]]
UNROLLED = 8
WARM = 11
POOL = 4


def timed(device: torch.device, step: Callable[[], object]) -> Run:
    wait = synchroniser([device])

    def run(steps: int) -> float:
        wait()
        began = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        return time.perf_counter() - began

    return run


def loaded(work: Work, device: torch.device) -> Run:
    """The tutorial's loop in fp32: a DataLoader over floats in host memory."""
    inputs, targets = _floats(work)
    loader = DataLoader(TensorDataset(inputs, targets), work.batch, shuffle=True, drop_last=True)

    def forever() -> Batches:
        while True:
            for some, wanted in loader:
                yield some.to(device), wanted.to(device)

    return _eager(work, device, forever())


def eager(work: Work, device: torch.device) -> Run:
    """The same without a loader: a few batches lie on the device."""
    return _eager(work, device, itertools.cycle(_pool(work, device)))


def _eager(work: Work, device: torch.device, batches: Batches) -> Run:
    set_flags("fp32")
    model = (Encoder(work) if work.tokens else work.made().model()).to(device)
    optimizer = work.made().optimizer(model.parameters(), work.train())

    def step() -> None:
        inputs, targets = next(batches)
        optimizer.zero_grad()
        _loss(model(inputs), targets).backward()
        optimizer.step()

    return timed(device, step)


def graphed(work: Work, device: torch.device) -> Run:
    """Compiled, bf16, channels_last, fused, whole step in a CUDA graph; batches are copied to where it reads."""
    model, optimizer, forward = _tuned(work, device)
    pool = _pool(work, device)
    if work.best.memory_format == "channels_last":
        pool = [(some.contiguous(memory_format=torch.channels_last), wanted) for some, wanted in pool]
    inputs, targets = pool[0][0].clone(), pool[0][1].clone()

    def work_once() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=work.best.precision == "bf16", cache_enabled=False):
            loss = _loss(forward(inputs), targets)
        loss.backward()
        optimizer.step()

    model.train()
    replay = _recorded(device, work_once)
    batches = itertools.cycle(pool)

    def step() -> None:
        some, wanted = next(batches)
        inputs.copy_(some)
        targets.copy_(wanted)
        replay()

    return timed(device, step)


def graphed_resident(work: Work, device: torch.device) -> Run:
    """Eight steps in a graph that gathers its rows from floats on the device."""
    _, optimizer, forward = _tuned(work, device)
    rows, labels = (values.to(device) for values in _floats(work))
    places = torch.zeros(UNROLLED, work.batch, dtype=torch.int64, device=device)

    def work_once() -> None:
        for place in places:
            optimizer.zero_grad(set_to_none=True)
            cross_entropy(forward(rows[place]), labels[place]).backward()
            optimizer.step()

    replay = _recorded(device, work_once)
    span = UNROLLED * work.batch

    def orders() -> Iterator[Tensor]:
        while True:
            order = torch.randperm(len(rows), device=device)
            yield from order[: len(rows) // span * span].view(-1, UNROLLED, work.batch)

    order = orders()

    def steps() -> None:
        places.copy_(next(order))
        replay()

    whole = timed(device, steps)
    # So many steps, to the next eight.
    return lambda many: whole(-(-many // UNROLLED)) * many / (-(-many // UNROLLED) * UNROLLED)


def _tuned(work: Work, device: torch.device) -> tuple[nn.Module, torch.optim.Optimizer, Callable[[Tensor], Tensor]]:
    set_flags("tf32")
    torch.backends.cudnn.benchmark = True
    model: nn.Module = (Gpt(work) if work.tokens else work.made().model()).to(device)
    if work.best.memory_format == "channels_last":
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=work.lr, fused=True)
    if work.optimizer == "adamw":
        on_gpu = device.type == "cuda"
        optimizer = torch.optim.AdamW(model.parameters(), lr=work.lr, fused=True, capturable=on_gpu)
    return model, optimizer, torch.compile(model, dynamic=False) if device.type == "cuda" else model


def _recorded(device: torch.device, work: Callable[[], None]) -> Callable[[], None]:
    """As a CUDA graph, after some tries on a stream of its own; on a processor the work itself."""
    if device.type != "cuda":
        return work
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return partial(_replay, graph, work)


def _replay(graph: torch.cuda.CUDAGraph, work: Callable[[], None]) -> None:
    """`work` is held, since the graph reads where its tensors lie."""
    del work
    graph.replay()


def _floats(work: Work) -> tuple[Tensor, Tensor]:
    split = work.split()
    return work.made().example(torch.from_numpy(split.inputs), torch.from_numpy(split.targets), torch.float32)


def _pool(work: Work, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    split = work.split()
    parts = [slice(number * work.batch, (number + 1) * work.batch) for number in range(POOL)]
    stored = [(torch.from_numpy(split.inputs[part]), torch.from_numpy(split.targets[part])) for part in parts]
    return [work.made().example(raw.to(device), wanted.to(device), torch.float32) for raw, wanted in stored]


def _loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(outputs.flatten(0, -2), targets.flatten())


class Encoder(nn.Module):
    """A language model of torch's own layers with an additive mask, as its tutorial has it."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        sizes = _sizes(work)
        self.tokens = nn.Embedding(work.kinds, sizes["width"])
        self.places = nn.Embedding(work.shape[0] - 1, sizes["width"])
        layer = nn.TransformerEncoderLayer(sizes["width"], sizes["heads"], sizes["ff"], 0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, sizes["layers"], enable_nested_tensor=False)
        self.head = nn.Linear(sizes["width"], work.kinds, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        hidden = self.tokens(tokens) + self.places.weight[:length]
        outputs: Tensor = self.head(self.layers(hidden, mask=mask))
        return outputs


class Gpt(nn.Module):
    """A GPT by hand: one product for query, key and value, torch's fused attention, a tied head."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        sizes = _sizes(work)
        self.tokens = nn.Embedding(work.kinds, sizes["width"])
        self.places = nn.Embedding(work.shape[0] - 1, sizes["width"])
        self.layers = nn.Sequential(
            *(GptLayer(sizes["width"], sizes["heads"], sizes["ff"]) for _ in range(sizes["layers"]))
        )
        self.norm = nn.LayerNorm(sizes["width"])
        self.head = nn.Linear(sizes["width"], work.kinds, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        outputs: Tensor = self.head(self.norm(self.layers(hidden)))
        return outputs


class GptLayer(nn.Module):
    def __init__(self, width: int, heads: int, ff: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joined, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner = nn.Sequential(nn.Linear(width, ff), nn.GELU(approximate="tanh"), nn.Linear(ff, width))

    def forward(self, hidden: Tensor) -> Tensor:
        parts = self.joined(self.first(hidden)).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.out(mixed.transpose(1, 2).flatten(2))
        outputs: Tensor = hidden + self.inner(self.second(hidden))
        return outputs


def _sizes(work: Work) -> dict[str, int]:
    made = work.made()
    return {name: int(getattr(made, name)) for name in ("width", "heads", "ff", "layers")}
