"""Frozen values that every other package speaks in.

They hold what was seen, what people want and what was decided. Nothing here does I/O,
reads a clock or logs. Everything above imports from here; this package imports nothing of ours.

Units: times are Unix seconds in UTC (`Timestamp`), lengths of time are seconds (`Seconds`).
"""
