"""The devices of this machine: their drivers' description, their current readings, and their data sheets.

Nothing here imports torch, because the server uses this package, and only the measuring process owns the device.
"""
