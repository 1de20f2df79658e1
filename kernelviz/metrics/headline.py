"""Which device time counts."""

from typing import Literal

Headline = Literal["cold", "warm"]
"""Which device time counts: with the caches flushed before each call, or with the data left in them."""
