"""Attention's mixing of values as a layer, so that an execution may put another in its place."""

from __future__ import annotations

from torch import Tensor, nn


class Attend(nn.Module):
    """Scaled dot-product attention (Vaswani et al. 2017): softmax(query key' scale) value, `dropout` on its weights.

    Query [n, heads, t, d], key and value [n, heads, s, d] -> [n, heads, t, d]. `mask` [n or 1, heads or 1, t or 1, s]
    says what may be looked at (bool) or is added before the softmax; `causal`: nobody looks ahead. `scale`: one over
    the square root of d, if left out. It has no weights and so no name in a checkpoint.
    """

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.p = dropout

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
        """[n, heads, t, d]."""
        return nn.functional.scaled_dot_product_attention(
            query, key, value, mask, self.p if self.training else 0.0, causal, scale=scale
        )

    def extra_repr(self) -> str:
        """As torch shows its own dropout."""
        return f"p={self.p}"
