"""The tasks of a shop. Their broker is a vhost of Crosstie."""

from celery import Celery

app = Celery("tasks", broker="amqp://shop:green-tea@127.0.0.1:5672/shop", backend="rpc://")
# Workers publish what becomes of each task.
app.conf.worker_send_task_events = True


@app.task
def pack(number, item):
    """Pack so many of an item; return what is on the parcel."""
    return f"{number} of {item}"
