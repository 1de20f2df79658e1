"""ResNet-50 after He et al., "Deep Residual Learning for Image Recognition" (2015), table 1, with the stride in the 3 × 3
convolution of a bottleneck ("v1.5"), as in torchvision. It has 25,557,032 parameters, as torchvision's has.

Convolutions start from Kaiming's normal distribution (fan out, ReLU). The scale of the last normalisation of each bottleneck
starts from zero, as in Goyal et al., "Accurate, Large Minibatch SGD" (2017), section 5.1. From ones, the gradients of the first
step depend so much on the rounding of each format that they prove nothing (relative error of bf16: 1.3).
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

PARAMETERS = 25_557_032
_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Width of the 3 × 3 convolution, number of bottlenecks, and stride of the first one (He et al., table 1)."""
_EXPANSION = 4


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3 and 1 × 1 convolutions beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * _EXPANSION
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))
            if stride != 1 or inputs != outputs
            else nn.Identity()
        )

    def forward(self, x_NCHW: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu_(self.bn1(self.conv1(x_NCHW)))
        hidden = torch.relu_(self.bn2(self.conv2(hidden)))
        return torch.relu_(self.bn3(self.conv3(hidden)) + self.shortcut(x_NCHW))


class ResNet50(nn.Module):
    """Images of shape (batch, 3, height, width) to logits of shape (batch, classes).

    `checkpointed`: keep only the inputs of the 16 bottlenecks, and compute what is inside of them again in the backward pass.
    """

    def __init__(self, classes: int = 1000, *, checkpointed: bool = False) -> None:
        super().__init__()
        self.checkpointed = checkpointed
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        blocks, inputs = [], 64
        for width, count, stride in _STAGES:
            for i in range(count):
                blocks.append(Bottleneck(inputs, width, stride if i == 0 else 1))
                inputs = width * _EXPANSION
        self.blocks = nn.ModuleList(blocks)
        self.classifier = nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, Bottleneck):
                nn.init.zeros_(module.bn3.weight)

    def forward(self, x_NCHW: torch.Tensor) -> torch.Tensor:
        hidden = self.pool(torch.relu_(self.bn1(self.conv1(x_NCHW))))
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False) if self.checkpointed else block(hidden)
        return self.classifier(hidden.mean((2, 3)))
