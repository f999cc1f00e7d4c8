"""HTTP requests as calls and publications, beside Crossbar.io's."""
