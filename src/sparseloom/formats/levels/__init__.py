"""The storage levels, one file each. To add one, write its file and add its members to ``LEVELS``."""

from __future__ import annotations

from sparseloom.formats.level import Level
from sparseloom.formats.levels.bitmap import Bitmap
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.levels.offset import Offset
from sparseloom.formats.levels.padded import Padded
from sparseloom.formats.levels.singleton import Singleton

# What each letter of a format's text stands for.
LEVELS: dict[str, Level] = {
    level.letter: level for level in (Dense(), Compressed(), Compressed(unique=False), Singleton(), Padded(), Bitmap(), Offset())
}

__all__ = ["LEVELS", "Bitmap", "Compressed", "Dense", "Offset", "Padded", "Singleton"]
