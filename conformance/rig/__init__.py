"""What the tests stand on: routers to start, clients to drive, plain sockets to abuse them with."""
