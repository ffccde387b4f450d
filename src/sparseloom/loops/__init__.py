"""The loop IR: small imperative programs over arrays, which can be printed, checked, simplified, run, and turned into C."""
