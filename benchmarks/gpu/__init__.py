"""Measurements on a GPU: named schedules and the planner's choice beside cuSPARSE's every algorithm, PyTorch and the speed of memory."""
