"""oslo.messaging's notifier, as nova has one.

    python notify.py URL TOPIC EVENT_TYPE      publishes a notification with the payload {"a": 1}

It runs in the environment of oslo.messaging, without the rig.
"""

from __future__ import annotations

import sys

import oslo_messaging
from oslo_config import cfg


def main() -> None:
    """Publish what the command line says."""
    url, topic, event_type = sys.argv[1:]
    cfg.CONF([])
    transport = oslo_messaging.get_notification_transport(cfg.CONF, url=url)
    notifier = oslo_messaging.Notifier(
        transport, publisher_id="compute.host1", driver="messagingv2", topics=[topic]
    )
    notifier.info({}, event_type, {"a": 1})
    transport.cleanup()


if __name__ == "__main__":
    main()
