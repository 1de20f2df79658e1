"""The process that owns a device, and the parts that control it: protocol, guard, supervisor, queue, device lock."""
