"""How Sphinx builds these pages: Markdown in, furo out, warnings are errors (`make docs`)."""

from __future__ import annotations

from gpu_pruner import __version__

project = "gpu-pruner"
author = "the gpu-pruner authors"
copyright = "the gpu-pruner authors"  # noqa: A001 - the name that Sphinx asks for
version = release = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"gpu-pruner {__version__}"
html_copy_source = False
html_show_sphinx = False
