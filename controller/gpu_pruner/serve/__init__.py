"""HTTP: metrics, health, and the read API."""
