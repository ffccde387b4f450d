"""Where values go: results that are dense, shared, appended, counted or inserted, and workspaces."""
