"""The cycle: observe, resolve, decide, notify, act, record."""
