"""Takes tea from the stock, and prints how much is left."""

import oslo_messaging
from oslo_config import cfg

URL = "rabbit://shop:green-tea@127.0.0.1:5672/shop"

cfg.CONF([])
transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=URL)
client = oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(topic="stock"))
print(client.call({}, "take", item="tea", number=2))
transport.cleanup()
