"""What a test has any client do."""

from __future__ import annotations

from dataclasses import dataclass, field

# Seconds that a session of MQTT 5 stays.
KEPT_S = 3600


@dataclass
class Message:
    """A message as a client's program sees it; properties as far as it is shown them."""

    topic: str
    payload: str = ""
    qos: int = 0
    retain: bool = False
    properties: dict = field(default_factory=dict)


@dataclass
class Login:
    """How a client connects."""

    address: tuple[str, int]
    client_id: str
    version: int
    clean: bool = True
    will: Message | None = None
    # A topic or filter that the program subscribes to in its connect handler.
    handler: str = ""
    # A name and a password, which it proves by SCRAM-SHA-256.
    scram: tuple[str, str] | None = None


class Client:
    """One client of one program."""

    name = ""
    versions: tuple[int, ...] = ()

    def connect(self, login: Login) -> None:
        """Connect, and wait for that."""
        raise NotImplementedError

    def subscribe(self, filter_: str, qos: int) -> None:
        """Subscribe, and wait for that."""
        raise NotImplementedError

    def publish(self, message: Message) -> None:
        """Publish, and wait until that is acknowledged, if the client can."""
        raise NotImplementedError

    def message(self) -> Message:
        """Return the next message."""
        raise NotImplementedError

    def await_connections(self, count: int) -> None:
        """Wait until it has been let in so often."""
        raise NotImplementedError

    def leave(self) -> None:
        """Disconnect in good order."""
        raise NotImplementedError

    def close(self) -> None:
        """End what is left of it."""
