"""The process in which a node's Autobahn|Python components run.

The node's controller starts it and tells it over the management realm what to host (`host`). Each
component (`component`) is loaded (`loading`), connected and connected again (`transport`), over
protocols that do per message what has to be done and no more (`rawsocket`, `websocket`).
"""

# The `extra` of the worker's options, for components that ask for it.
extra: object = None
