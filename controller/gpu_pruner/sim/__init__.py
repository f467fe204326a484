"""A simulated cluster over real HTTP: API server, small controllers, DCGM exporters, a fast clock.

Behind `make demo` and the integration tests. It imports nothing of the controller but model values.
"""
