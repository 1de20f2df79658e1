"""The page Ladder: its boxes, chart, rungs and buttons."""
