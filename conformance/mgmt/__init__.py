"""RabbitMQ's management API: its answers, its tools, requests that break the rules."""
