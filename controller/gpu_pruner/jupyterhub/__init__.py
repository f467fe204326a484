"""JupyterHub's REST API, as far as stopping and starting servers needs it. Never decides."""
