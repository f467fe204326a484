"""The workbench extension: shows a JupyterLab user the GPU activity of their own notebook.

It shares nothing with the controller but the controller's HTTP API.
"""

__version__ = "0.1.0"
