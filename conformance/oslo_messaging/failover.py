"""Runs oslo.messaging's `RabbitMQFailoverTests` as its library takes what they ask for.

They set the interval between attempts to connect to 0, of which the library's option does not take
less than 1, and have pools of one connection, of which two are the least now: so that they fail
before they begin, whatever broker there is. Here they have an interval of 1 and no least. And
psutil, by which pifpaf waits for programs, polls their descriptors where the system has such, while
eventlet, which oslo.messaging's tests run upon, takes `select.poll` away: here it waits as it does
elsewhere. RabbitMQ passes them so, too.

And they give a server 0.1 s to have its queues again on the next node before it is called there. A
call is for a queue that is there: one that comes before is lost, with any broker, since the
exchange is there as soon as the server begins to declare. Nodes of a cluster of RabbitMQ let
clients in at once; here they wait, server and client alike, until another node has the vhost, and
come in together. So a node is killed only after the server has declared its queues.
"""

from __future__ import annotations

import os
import signal
import sys
import time

# It has eventlet patch what everything else is upon.
import oslo_messaging.tests.utils
from oslo_messaging._drivers import impl_rabbit
from pifpaf.drivers.rabbitmq import RabbitMQDriver
from testtools import run

Case = oslo_messaging.tests.utils.BaseTestCase
configure = Case.config
make = RabbitMQDriver.__init__
kill = RabbitMQDriver.kill_node
declare = impl_rabbit.Consumer.declare
# Far beyond what it takes on a loaded machine.
DEADLINE_S = 120
# Queues that the servers of this test have declared since a node was killed.
declared: set[str] = set()


def config(self: Case, **values: object) -> None:
    """Configure, with what the options take."""
    if "rabbit_retry_interval" in values:
        values |= {"rabbit_retry_interval": 1, "conn_pool_min_size": 1}
    configure(self, **values)


def start(self: RabbitMQDriver, *arguments: object, **values: object) -> None:
    """Have programs looked for on PATH, and not first where RabbitMQ may be installed."""
    make(self, *arguments, **values)
    self._path = []
    declared.clear()


def declare_and_note(self: impl_rabbit.Consumer, connection: impl_rabbit.Connection) -> None:
    """Declare a queue; where replies come is the client's."""
    declare(self, connection)
    if not self.queue_name.startswith("reply_"):
        declared.add(self.queue_name)


def kill_and_wait(self: RabbitMQDriver, name: str, **how: object) -> None:
    """Kill a node, and wait for the servers, unless it is the end."""
    wanted = set(declared)
    declared.clear()
    kill(self, name, **how)
    if how.get("signal") != signal.SIGKILL:
        return
    deadline = time.monotonic() + DEADLINE_S
    while missing := wanted - declared:
        assert time.monotonic() < deadline, f"never declared again: {missing}"
        time.sleep(0.05)


Case.config = config
RabbitMQDriver.__init__ = start
RabbitMQDriver.kill_node = kill_and_wait
impl_rabbit.Consumer.declare = declare_and_note
del os.pidfd_open
run.main(sys.argv, sys.stdout)
