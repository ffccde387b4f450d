"""The scheduling language: how the loops of a statement are rearranged, one checked step at a time."""
