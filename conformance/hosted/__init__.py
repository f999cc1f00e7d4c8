"""Components that the tests have hosted; a folder to name in `pythonpath`."""
