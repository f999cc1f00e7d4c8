"""kombu, as Celery's users run it: several hosts, none of which needs to own the vhost."""

from __future__ import annotations

import signal
import threading

import kombu
from kombu.mixins import ConsumerMixin
from rig.ports import free_ports
from rig.router import Router
from rig.waiting import DEADLINE_S, await_true

from ledger.stage import QUEUE, await_owner

EACH = 50
HEARTBEAT_S = 2
TASKS = kombu.Queue(QUEUE, durable=True, routing_key=QUEUE)
# It goes to the next host at once, and waits when all have been tried.
PATIENT = {"max_retries": 300, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.3}


def connection(nodes: list[Router]) -> kombu.Connection:
    """Return a connection that has these hosts, and goes to them in their order."""
    addresses = [node.address("amqp") for node in nodes]
    return kombu.Connection(
        [f"amqp://test:test@{host}:{port}//" for host, port in addresses],
        heartbeat=HEARTBEAT_S,
        transport_options={"confirm_publish": True},
    )


class Worker(ConsumerMixin):
    """Takes numbers, and connects anew by kombu's own means."""

    def __init__(self, nodes: list[Router]):
        self.connection = connection(nodes)
        self.numbers: list[int] = []
        # The connection that it has at present, which kombu makes of that.
        self.present: kombu.Connection | None = None
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()

    def get_consumers(self, consumer, channel) -> list[kombu.Consumer]:
        """Consume the queue."""
        self.present = channel.connection.client
        return [consumer([TASKS], callbacks=[self._take], prefetch_count=10)]

    def on_connection_error(self, exc: Exception, interval: float) -> None:
        """Say nothing of it."""

    def _take(self, number: int, message: kombu.Message) -> None:
        self.numbers.append(number)
        message.ack()

    def octets(self) -> int:
        """Return how much its connection has read."""
        return self.present.connection.bytes_recv

    def end(self) -> None:
        """Have it end."""
        self.should_stop = True
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()


def test_kombu_goes_to_its_next_host_and_loses_nothing(nats, start):
    servers = nats()
    nodes = []
    for name in "abc":
        address = f"127.0.0.1:{free_ports(1)[0]}"
        nodes.append(start(servers, f"node_{name}", elsewhere="splice", address=address))
    owner = await_owner(nodes)
    # No client is where the vhost is.
    hosts = [node for node in nodes if node is not owner] + [owner]
    worker = Worker(hosts)
    with connection(hosts) as publishing:
        producer = publishing.Producer()
        published = 0

        def publish() -> None:
            nonlocal published
            for _ in range(EACH):
                published += 1
                producer.publish(
                    published,
                    routing_key=QUEUE,
                    declare=[TASKS],
                    delivery_mode=2,
                    retry=True,
                    retry_policy=PATIENT,
                )
            everything = set(range(1, published + 1))
            await_true("all have come", lambda: set(worker.numbers) == everything)

        publish()
        assert hosts[0].metric("amqp_splices_open") == 2
        # Idle connections have heartbeats: the owner's, not the forwarding node's.
        heard, sent = worker.octets(), hosts[0].metric("amqp_splices_sent_bytes_total")
        await_true("it hears the owner", lambda: worker.octets() > heard)
        await_true(
            "the owner hears it",
            lambda: hosts[0].metric("amqp_splices_sent_bytes_total") > sent,
        )
        owner.signal(signal.SIGTERM)
        assert owner.exit_code() == 0
        publish()
        left = [node for node in nodes if node is not owner]
        second = await_owner(left)
        second.kill()
        publish()
        (last,) = (node for node in left if node is not second)
        assert await_owner([last]) is last
    worker.end()
    # Unconfirmed or unacknowledged messages may come twice; first they came in order.
    firsts = list(dict.fromkeys(worker.numbers))
    assert firsts == sorted(firsts)
