"""``python -m sparseloom`` is the command ``sparseloom``."""

from __future__ import annotations

from sparseloom.cli.command import command

command()
