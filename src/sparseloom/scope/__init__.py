"""What is known at one place in the loops: coordinates, ranges, views of tensors, and the contract of what is written to."""
