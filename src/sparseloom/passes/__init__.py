"""Passes over loops: loop IR in, loop IR out. ``compiler.loop_passes`` lists them in order."""
