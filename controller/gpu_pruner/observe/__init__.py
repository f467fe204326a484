"""Telemetry and cluster state as model values. Reads only, never decides."""
