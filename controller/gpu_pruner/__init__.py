"""gpu-pruner, the controller: finds idle GPUs, warns their owners, pauses reversibly.

The packages and what may import what: see `docs/explanation/architecture.md`.
"""

__version__ = "0.1.0"
