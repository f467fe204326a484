"""`gpu-pruner check`: what is right and wrong with the set-up, and the fix for each.

`examination` and `hub_questions` ask; the other modules are pure, and turn what was found into
findings. What a cycle decides is taken from the cycle's own code, never worked out a second
time. Called by `cli` only.
"""
