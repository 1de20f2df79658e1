"""The devices of this machine as their drivers describe them, what they report now, and what their data sheets say.

Nothing here imports torch: the server asks these questions, the measuring process owns the device.
"""
