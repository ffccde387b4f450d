"""Formats: how a tensor is stored, as a stack of levels over a mode order."""
