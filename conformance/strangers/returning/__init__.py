"""Programs of clients that are to come back, and the table of which do."""
