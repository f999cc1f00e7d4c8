"""Serves the topic `stock`: how much of an item is there, and takes some of it."""

import threading

import oslo_messaging
from oslo_config import cfg

URL = "rabbit://shop:green-tea@127.0.0.1:5672/shop"


class Stock:
    """What the shop has."""

    def __init__(self):
        self.numbers = {"tea": 10}
        self.lock = threading.Lock()

    def count(self, context, item):
        """Return how many there are."""
        return self.numbers[item]

    def take(self, context, item, number):
        """Take so many; return how many are left."""
        with self.lock:
            if self.numbers[item] < number:
                raise ValueError(f"there are {self.numbers[item]} of {item}")
            self.numbers[item] -= number
            return self.numbers[item]


cfg.CONF([])
transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=URL)
target = oslo_messaging.Target(topic="stock", server="server1")
server = oslo_messaging.get_rpc_server(transport, target, [Stock()])
server.start()
print("serves", flush=True)
server.wait()
