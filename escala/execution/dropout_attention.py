"""Attention whose weights are dropped by the rows of the global batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from escala.execution.dropout_layer import RowDropout


class RowAttend(nn.Module):
    """`Attend` with the mask of its weights from a `RowDropout`; it cannot use torch's fused kernels."""

    def __init__(self, dropout: RowDropout) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        """As `Attend.forward`."""
        if not self.training:
            return nn.functional.scaled_dot_product_attention(query, key, value, mask, 0.0, causal, scale=scale)
        return self.weights(query, key, mask, causal=causal, scale=scale) @ value

    def weights(
        self, query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool = False, scale: float | None = None
    ) -> Tensor:
        """By how much each value is taken, [n, heads, t, s], with what was dropped at 0."""
        alike = (query * (query.shape[-1] ** -0.5 if scale is None else scale)) @ key.transpose(-2, -1)
        if causal:
            ahead = torch.ones(alike.shape[-2:], dtype=torch.bool, device=alike.device).triu_(1)
            alike = alike.masked_fill(ahead, -torch.inf)
        if mask is not None:
            alike = alike.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else alike + mask
        dropped: Tensor = self.dropout(alike.softmax(-1))
        return dropped


class RowMultihead(nn.Module):
    """torch's MultiheadAttention with batches first, under the same names, with the mask of its weights by row.

    It keeps what nn.TransformerEncoderLayer reads of its attention when it judges.
    """

    merge_masks = nn.MultiheadAttention.merge_masks

    def __init__(self, taken: nn.MultiheadAttention, dropout: RowDropout) -> None:
        super().__init__()
        self.in_proj_weight: nn.Parameter
        self.in_proj_bias: nn.Parameter | None
        self.embed_dim, self.num_heads, self.head_dim = taken.embed_dim, taken.num_heads, taken.head_dim
        self.batch_first = True
        self._qkv_same_embed_dim = True
        self.register_parameter("in_proj_weight", taken.in_proj_weight)
        self.register_parameter("in_proj_bias", taken.in_proj_bias)
        self.out_proj = taken.out_proj
        self.mix = RowAttend(dropout)
        self.training = taken.training

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """[n, t, embed_dim] and, if asked, the weights [n, t, s] or [n, heads, t, s]; arguments as in torch."""
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        inputs = (query, key, value)
        queries, keys, values = (
            nn.functional.linear(rows, weight, bias).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for rows, weight, bias in zip(inputs, weights, biases, strict=True)
        )
        mask = self._mask(key_padding_mask, attn_mask, query)
        causal = is_causal and attn_mask is None
        given = None
        if need_weights:
            given = self.mix.weights(queries, keys, mask, causal=causal)
            mixed = given @ values
            given = given.mean(1) if average_attn_weights else given
        else:
            mixed = self.mix(queries, keys, values, mask, causal=causal)
        return self.out_proj(mixed.transpose(1, 2).flatten(2)), given

    def _mask(self, padding: Tensor | None, pairs: Tensor | None, like: Tensor) -> Tensor | None:
        """What is added before the softmax; in torch's masks True is what may NOT be looked at."""
        masks = list[Tensor]()
        if padding is not None:
            masks.append(_added(padding, like)[:, None, None, :])
        if pairs is not None:
            added = _added(pairs, like)
            masks.append(added.unflatten(0, (-1, self.num_heads)) if added.ndim == 3 else added)
        return sum(masks[1:], masks[0]) if masks else None


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype is not torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, -torch.inf)
