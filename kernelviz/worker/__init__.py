"""The process that owns a device, and what stands around it: protocol, guard, supervision, queue, device lock."""
