"""The only package that talks to the Kubernetes API server.

Bulk reads and watches are raw bytes decoded into partial msgspec Structs; writes are single
patches with preconditions. Library errors become `gpu_pruner.errors` here.
"""
