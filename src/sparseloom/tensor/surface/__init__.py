"""The array surface: functions that NumPy has too, on tensors of any format. One file per family, and one table of all of them."""
