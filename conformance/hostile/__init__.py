"""What one peer does to stop everybody else, and the witness beside it."""
