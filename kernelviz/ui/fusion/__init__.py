"""The page Fusion: its boxes, cards, chart and tables."""
