"""``python -m sparseloom`` is the command ``sparseloom``."""

from __future__ import annotations

import sys

from sparseloom.cli.main import main

sys.exit(main())
