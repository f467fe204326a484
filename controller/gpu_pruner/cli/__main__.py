"""`python -m gpu_pruner.cli`: the same command where its script is not on the PATH."""

from __future__ import annotations

from gpu_pruner.cli import main

if __name__ == "__main__":
    main()
