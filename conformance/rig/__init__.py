"""The base of the tests: routers to start, clients to drive, plain sockets to abuse them with."""
