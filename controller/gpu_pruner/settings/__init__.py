"""Typed settings, and the one source of defaults."""
