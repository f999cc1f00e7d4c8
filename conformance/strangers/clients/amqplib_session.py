"""Declare, publish, consume and acknowledge by amqplib, which speaks 0-8: host, port, queue."""

import sys

from amqplib import client_0_8 as amqp

HOST, PORT, QUEUE = sys.argv[1:]

connection = amqp.Connection(f"{HOST}:{PORT}", userid="test", password="test", virtual_host="/")
channel = connection.channel()
channel.access_request("/data", active=True, read=True, write=True)
channel.queue_declare(QUEUE, auto_delete=True)
seen: list[str] = []


def consumed(message) -> None:
    """Acknowledge, and say what came."""
    body = message.body if isinstance(message.body, str) else message.body.decode()
    print(body)
    message.channel.basic_ack(message.delivery_tag)
    seen.append(body)


channel.basic_consume(QUEUE, callback=consumed)
for number in range(1, 4):
    channel.basic_publish(amqp.Message(str(number)), exchange="", routing_key=QUEUE)
while "3" not in seen:
    channel.wait()
channel.close()
connection.close()
print("closed")
