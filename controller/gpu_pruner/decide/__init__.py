"""Evidence to verdict, verdict to clock, clock to plan. Pure and deterministic.

`evidence` folds tracks, `screen` keeps per-device facts between cycles, `idle` gives verdicts,
`clock` moves a workload from warned to due, `budget` finds free slots, `plan` puts it together.
Bad data is a Keep with a reason here, never an exception.
"""
