"""What is to be computed and what is known of the data; from both, how it runs."""
