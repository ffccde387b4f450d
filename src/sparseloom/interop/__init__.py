"""Neighbours: one file for each library whose data come in and go out."""
