"""AMQPStorm's own tests of its management client, which come with the package.

They run in a network of their own, because they name the port 5672.
"""

from __future__ import annotations

import re
import subprocess

from rabbitmq_tools.alone import needs_network, run
from rabbitmq_tools.place import PYTHON

# Tests that do not pass, with the reason.
LEFT_OUT = {
    "test_api_cluster_name": "the name of its author's broker is expected",
    "test_api_with_inaccessible": "an address of a network that is not there is asked",
}


@needs_network
def test_its_functional_tests_pass(tmp_path):
    environment = {
        "AMQP_HOST": "127.0.0.1",
        "AMQP_USERNAME": "guest",
        "AMQP_PASSWORD": "guest",
        "AMQP_URI": "amqp://guest:guest@127.0.0.1:5672/%2F",
        "AMQP_HTTP_URL": "http://127.0.0.1:15672",
    }
    code = "import amqpstorm.tests.functional.management as m; print(m.__path__[0])"
    found = subprocess.run([PYTHON, "-c", code], text=True, capture_output=True, check=True)
    words = ["env", *(f"{name}={value}" for name, value in environment.items())]
    words += [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", found.stdout.strip()]
    words += ["-k", " and ".join(f"not {name}" for name in LEFT_OUT)]
    said = run(tmp_path, "", *words)
    passed = re.search(r"(\d+) passed", said)
    assert passed, said[-2_000:]
    assert int(passed[1]) + len(LEFT_OUT) == 56
