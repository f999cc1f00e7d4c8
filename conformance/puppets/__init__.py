"""Programs that drive autobahn-python as `rig.puppet` tells them."""
