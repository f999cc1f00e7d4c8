"""Links between realms of several nodes."""
