"""A small decoder-only transformer with the normalisation before each part, as in GPT-2 (Radford et al., 2019)."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    """Causal attention and a feed-forward part of four times the width, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x_BLD: torch.Tensor) -> torch.Tensor:
        batch, length, width = x_BLD.shape
        qkv = self.qkv(self.norm1(x_BLD)).view(batch, length, 3, self.heads, width // self.heads)
        q_BHLK, k_BHLK, v_BHLK = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q_BHLK, k_BHLK, v_BHLK, is_causal=True)
        x_BLD = x_BLD + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x_BLD + self.down(functional.gelu(self.up(self.norm2(x_BLD))))


class Transformer(nn.Module):
    """Tokens of shape (batch, length) to logits of shape (batch, length, vocabulary).

    `checkpointed`: keep only the inputs of the layers, and compute what is inside of them again in the backward pass.
    """

    def __init__(
        self, *, layers: int, width: int, heads: int, vocabulary: int, length: int, checkpointed: bool = False
    ) -> None:
        super().__init__()
        self.checkpointed = checkpointed
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens_BL: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(tokens_BL) + self.positions.weight[: tokens_BL.shape[1]]
        for layer in self.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=False) if self.checkpointed else layer(hidden)
        return self.head(self.norm(hidden))
