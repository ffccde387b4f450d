"""Targets: loops in, the text of another language out. They decide nothing."""
