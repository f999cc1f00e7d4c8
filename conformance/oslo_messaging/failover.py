"""Runs oslo.messaging's `RabbitMQFailoverTests` as its library takes what they ask for.

They set the interval between attempts to connect to 0, of which the library's option does not take
less than 1, and have pools of one connection, of which two are the least now: so that they fail
before they begin, whatever broker there is. Here they have an interval of 1 and no least. And
psutil, by which pifpaf waits for programs, polls their descriptors where the system has such, while
eventlet, which oslo.messaging's tests run upon, takes `select.poll` away: here it waits as it does
elsewhere. RabbitMQ passes them so, too.
"""

from __future__ import annotations

import os
import sys

from oslo_messaging.tests import utils
from pifpaf.drivers.rabbitmq import RabbitMQDriver
from testtools import run

configure = utils.BaseTestCase.config
make = RabbitMQDriver.__init__


def config(self: utils.BaseTestCase, **values: object) -> None:
    """Configure, with what the options take."""
    if "rabbit_retry_interval" in values:
        values |= {"rabbit_retry_interval": 1, "conn_pool_min_size": 1}
    configure(self, **values)


def start(self: RabbitMQDriver, *arguments: object, **values: object) -> None:
    """Have programs looked for on PATH, and not first where RabbitMQ may be installed."""
    make(self, *arguments, **values)
    self._path = []


utils.BaseTestCase.config = config
RabbitMQDriver.__init__ = start
del os.pidfd_open
run.main(sys.argv, sys.stdout)
