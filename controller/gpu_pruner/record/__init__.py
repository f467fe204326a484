"""Metrics, the decision log, and the latest cycle as others may read it."""
