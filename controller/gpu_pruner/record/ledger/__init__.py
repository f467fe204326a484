"""The ledger: history, evidence and audit in SQL. Deciding never depends on it."""
