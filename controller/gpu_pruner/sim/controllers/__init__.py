"""The small controllers of the simulated cluster: one module per kind, and the loop that runs them.

Each imitates what its original does to objects and status; none polls, all react to the store.
"""
