"""How index variables stand for others: one file per relation."""
