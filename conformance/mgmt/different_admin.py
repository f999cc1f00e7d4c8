"""Where the outcomes of rabbitmqadmin's commands differ, and why."""

from __future__ import annotations

TERM = "the reason is a list in RabbitMQ"
FIGURES = "figures of Erlang and of RabbitMQ's message store"
ORDER = "keys of an object in another order"
WORD = "RabbitMQ's text says whether Erlang has met the word before"
NULL = "RabbitMQ's script ends with an error of Python at a null"

# With Crosstie's broker, by any program.
OF_BROKER = {
    "! admin declare queue name=bad durable=perhaps": TERM,
    "! admin publish routing_key=a payload=x payload_encoding=nope": TERM,
    "! admin declare exchange name=g type=nope": WORD,
    "= admin list parameters": ORDER,
    ": admin -f raw_json list queues": FIGURES,
    ": admin -f raw_json list connections": FIGURES,
    ": admin -f raw_json list channels": FIGURES,
    ": admin -f raw_json list nodes": FIGURES,
    ": admin -f raw_json show overview": FIGURES,
}

# By Crosstie's program.
OF_PROGRAM = {"? admin -d 2 list queues": NULL}
