"""Who holds what: series to device, device to pod, pod to root; assembles the Snapshot.

Pure. Marks every gap it finds; it never fills one. `loop.cycle` calls `assemble`.
"""
