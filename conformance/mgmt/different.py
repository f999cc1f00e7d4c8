"""Where Crosstie's answers differ from RabbitMQ's, and why."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

ERLANG = "a figure of Erlang's processes"
DISK = "a figure of RabbitMQ's message store, or of its database"
NOT_COUNTED = "Crosstie does not count this"
BYTES = "Crosstie knows the bytes of ready messages only"
NO_ERROR = "RabbitMQ fails with 500"

# By what differs, with `*` for any text: `-KEY` is absent here, `+KEY` is not in RabbitMQ's answer,
# `KEY:` has another type. A reason that starts with a case's name is for that case alone.
REASONS: dict[str, str] = {
    "-garbage_collection": ERLANG,
    "-gc_*": ERLANG,
    "-reductions*": ERLANG,
    "-context_switches*": ERLANG,
    "-metrics_gc_queue_length": ERLANG,
    "-io_*": DISK,
    "-mnesia_*": DISK,
    "-msg_store_*": DISK,
    "-queue_index_*": DISK,
    "-ra_open_file_metrics": DISK,
    "-backing_queue_status": DISK,
    "-open_files": DISK,
    "-disk_reads*": DISK,
    "-disk_writes*": DISK,
    "-memory": "messages in memory are counted per vhost",
    "-message_bytes_*": BYTES,
    "-messages_persistent": NOT_COUNTED,
    "-idle_since": NOT_COUNTED,
    "-user_who_performed_action": "exchanges do not keep who declared them",
    "+left_out": "passwords of the configuration are not exported",
    "+being_drained": "rabbitmqadmin 2 requires it",
    "consumer_capacity:": "Crosstie does not measure how long queues wait for their consumers",
    "consumer_utilisation:": "Crosstie does not measure how long queues wait for their consumers",
    "GET */v2 as * +message_stats": "RabbitMQ has not counted the aliveness test yet",
    "GET nodes/nope as guest status": NO_ERROR,
    "GET nodes/{node}/memory/ets* as guest -*": "there are no tables of Erlang",
    "POST vhosts/nope/start/{node} as guest reason:": "RabbitMQ prints a term of Erlang",
    "POST login as None * set-cookie": "the cookie would have the password, and nothing reads it",
    "OPTIONS * Access-Control-Request-Headers * access-control-max-age": (
        "RabbitMQ forgets the age in an answer that names headers"
    ),
    "GET connections/username/guest as guest *": "RabbitMQ leaves the statistics out",
    "GET health/checks/port-listener/1 as guest *": "the listeners of the test",
    "GET health/checks/protocol-listener/mqtt as guest *": "the listeners of the test",
}


def reason(name: str, key: str) -> str | None:
    """Return the entry that explains a difference."""
    of_case = key if key.startswith(name) else f"{name} {key}"
    for pattern in REASONS:
        if fnmatchcase(key, pattern) or fnmatchcase(of_case, pattern):
            return pattern
    return None


def differences(name: str, recorded: dict, answered: dict) -> Iterator[tuple[str, str]]:
    """Return each difference: its key in `REASONS`, and a text."""
    if recorded == answered:
        return
    if recorded["status"] != answered["status"]:
        yield f"{name} status", f"{recorded['status']} became {answered['status']}: {answered}"
        return
    for header in sorted({*recorded, *answered} - {"status", "body"}):
        if recorded.get(header) != answered.get(header):
            yield f"{name} {header}", f"{recorded.get(header)} became {answered.get(header)}"
    if "body" not in recorded or "body" not in answered:
        if ("body" in recorded) != ("body" in answered):
            yield f"{name} body", f"{recorded} became {answered}"
        return
    yield from of_bodies(recorded["body"], answered["body"], "")


def of_bodies(recorded: object, answered: object, place: str) -> Iterator[tuple[str, str]]:
    """Return the differences of two shapes."""
    if isinstance(recorded, dict) and isinstance(answered, dict):
        for key in sorted({*recorded, *answered}):
            if key not in answered:
                yield f"-{key}", f"{place}.{key} is absent"
            elif key not in recorded:
                yield f"+{key}", f"{place}.{key} is not in RabbitMQ's answer"
            else:
                yield from of_bodies(recorded[key], answered[key], f"{place}.{key}")
        return
    if isinstance(recorded, list) and isinstance(answered, list):
        if "none" not in (recorded[0], answered[0]):
            yield from of_bodies(recorded[0], answered[0], f"{place}[]")
        return
    if recorded == answered:
        return
    kinds = set(str(recorded).split("|"))
    if not set(str(answered).split("|")) <= kinds:
        key = place.rsplit(".", 1)[-1]
        yield f"{key}:", f"{place} is {answered}, and was {recorded}"
