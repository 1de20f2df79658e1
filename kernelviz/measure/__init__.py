"""Everything that touches a device: bind, check, time, flush, roofs. Imported in the worker only."""
