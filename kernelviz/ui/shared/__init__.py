"""What several pages share: links, view filters, live progress, downloads, tiles, and text that is never interpreted."""
