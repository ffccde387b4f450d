"""The other ways to compute the same thing: one file for each library, which is loaded only when it is measured."""
