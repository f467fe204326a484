"""The ledger's schema, step by step. Forward only; run at start, in one transaction."""
