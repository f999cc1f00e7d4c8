"""The host: a session in the node's management realm that starts and stops components.

Inputs: its procedures, a signal, the components' ends. Outputs: events, log lines, and at last an
exit code. Procedures and events are `crossbar.worker.<id>.…`, named as Crossbar.io's.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import sys
import threading
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import txaio
from autobahn.twisted.wamp import ApplicationSession
from autobahn.wamp.exception import ApplicationError
from autobahn.wamp.types import CloseDetails, ComponentConfig, PublishOptions
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.error import ReactorNotRunning

from crosstie.container.arguments import checked
from crosstie.container.component import Component, Listener, cancel, now
from crosstie.container.keys import refuse_unknown
from crosstie.container.loading import LoadError, Modules, load
from crosstie.container.order import Order, references
from crosstie.container.processinfo import ProcessInfo
from crosstie.container.transport import way

REALM = "crossbar"
# Reaction of a worker to the end of its components.
MANUAL = "manual"
LAST_STOPPED = "last-component-stopped"
ANY_STOPPED = "any-component-stopped"
ANY_FAILED = "any-component-failed"
LAST_WORDS = "Container is hosting no more components: shutting down."
POLICIES = (MANUAL, LAST_STOPPED, ANY_STOPPED, ANY_FAILED)
# Beyond this the process ends, whatever its components are still doing.
SHUTDOWN_MOST_S = 4.5
# How long the node may take to say goodbye.
GOODBYE_MOST_S = 1.0
# The controller asks for one component after the other, the next as soon as it has an answer: once
# it has asked for none for so long, those that there were are all.
START_FOLLOWS_S = 1.0
# Garbage is looked for so rarely because what a component keeps from call to call is little, and
# each look at all of it stops everything; what was made by starting up is not looked at again.
COLLECT_AFTER_OBJECTS = (50_000, 20, 20)
# But for sessions that were lost, with all that a component keeps in them: so long after the first
# of several.
LOST_COLLECTED_S = 1.0


@dataclass
class Options:
    """Arguments from the controller at this process's start."""

    worker: str
    directory: Path
    shutdown: str
    # Shared state of components, if requested.
    shared: dict | None = None


class Host:
    """The components of this process, and what becomes of it."""

    log = txaio.make_logger()

    def __init__(self, options: Options, reactor):
        self.exit_code = 0
        self._options = options
        self._reactor = reactor
        self._components: dict[str, Component] = {}
        self._restarting: set[str] = set()
        # Those that have joined once.
        self._settled: set[str] = set()
        # Those whose last end was a failure.
        self._failed: set[str] = set()
        self._last_start_s = 0.0
        self._looking = None
        self._is_collecting = False
        self._order = Order()
        self._modules = Modules()
        self._process = ProcessInfo()
        self._management: Management | None = None
        self._is_shutting_down = False
        self._done = Deferred()

    # Procedures for the controller.

    def start_component(self, component_id: str, definition: dict) -> dict:
        """Load a component and begin to connect it."""
        name = component_id
        if self._is_shutting_down:
            raise ApplicationError("crossbar.error.invalid_state", "the worker is shutting down")
        if name in self._components:
            raise ApplicationError(
                "crossbar.error.already_running",
                f"component '{name}' is already running in worker '{self._options.worker}'",
            )
        self._publish("on_component_starting", {"id": name})
        try:
            component = self._new_component(name, definition)
        except ApplicationError as error:
            self._last_start_s = self._reactor.seconds()
            reason = str(error.args[0])
            self.log.error("Component '{name}' cannot start: {reason}", name=name, reason=reason)
            self._publish("on_component_failed", {"id": name, "reason": reason})
            self._failed.add(name)
            self._apply_policy(name, reason)
            raise
        self._last_start_s = self._reactor.seconds()
        self._failed.discard(name)
        self._components[name] = component
        self._order.start(component)
        started = {"id": name, "started": component.started}
        self._publish("on_component_started", started)
        return started

    async def stop_component(self, component_id: str) -> dict:
        """Let a component leave."""
        await self._find(component_id).stop()
        return {"id": component_id, "stopped": now()}

    async def restart_component(self, component_id: str, reload_modules: bool = False) -> dict:
        """Stop a component and start it again; with `reload_modules` its files are read anew."""
        component = self._find(component_id)
        self._restarting.add(component_id)
        try:
            stopped = await self.stop_component(component_id)
        finally:
            self._restarting.discard(component_id)
        if reload_modules:
            self._modules.forget()
        return {**stopped, **self.start_component(component_id, component.definition)}

    def get_component(self, component_id: str) -> dict:
        """Describe one component."""
        return self._find(component_id).describe()

    def get_components(self) -> list[dict]:
        """Describe all components, in the order of their start."""
        return [component.describe() for component in self._components.values()]

    def get_process_info(self) -> dict:
        """Describe the process."""
        return {**self._process.get_stats(), **self._process.get_info()}

    def request_shutdown(self) -> None:
        """Stop in good order, once the caller has its result."""
        self._reactor.callLater(0, self.shutdown)

    # Events of the process.

    def attach(self, session: Management) -> None:
        """Take the session in the management realm."""
        self._management = session

    def handle_management_lost(self) -> None:
        """The node is gone: no controller is left."""
        self._management = None
        if not self._is_shutting_down:
            self.log.error("Connection to node controller lost: the node is gone")
            self._exit(1)

    def handle_signal(self) -> None:
        """Take a signal to end, which comes at any time; a component may be blocking the thread."""
        end_in_time(0)
        self._reactor.callFromThread(self._terminate)

    def _terminate(self) -> None:
        if self._is_shutting_down:
            return
        self.log.info("Native worker received SIGTERM - shutting down ..")
        self.shutdown()

    def shutdown(self, exit_code: int = 0) -> Deferred:
        """Let all components leave, then the management realm; then end the process."""
        if self._is_shutting_down:
            return self._done
        self._is_shutting_down = True
        self.exit_code = exit_code
        self.log.info("Shutdown of worker requested!")
        end_in_time(exit_code)
        self._publish("on_shutdown_requested", {"id": self._options.worker})
        leaving = [component.stop() for component in list(self._components.values())]
        DeferredList(leaving).addCallback(lambda _: self._leave_node())
        return self._done

    def _leave_node(self):
        session = self._management
        if session is None or not session.is_attached():
            self._exit(self.exit_code)
            return
        closed = session.leave()

        def end():
            cancel(impatient)
            if not self._done.called:
                how = "cleanly" if session.has_left else "uncleanly"
                self.log.info("Connection to node controller closed {how}", how=how)
                self._exit(self.exit_code)

        impatient = self._reactor.callLater(GOODBYE_MOST_S, end)
        closed.addCallback(lambda _: end())

    def _exit(self, code: int):
        self._is_shutting_down = True
        self.exit_code = code
        if not self._done.called:
            self._done.callback(None)
        # A component may have stopped it.
        with contextlib.suppress(ReactorNotRunning):
            self._reactor.stop()

    # Events of components.

    def _new_component(self, name: str, definition: dict) -> Component:
        if not isinstance(definition, dict):
            raise invalid(name, "a component's definition is an object")
        try:
            refuse_unknown(definition)
        except ValueError as error:
            raise invalid(name, str(error)) from error
        realm = definition.get("realm")
        if not isinstance(realm, str):
            raise invalid(name, "a component has a 'realm', which is a string")
        extra = definition.get("extra", {})
        if isinstance(extra, dict):
            # As Crossbar.io has it.
            extra = {**extra, "cbdir": str(self._options.directory)}
        try:
            found = way(definition.get("transport"), self._options.directory, self._reactor)
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError, OSError) as error:
            missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise invalid(name, f"its transport: {missing}") from error
        try:
            loaded = load(definition)
        except LoadError as error:
            raise ApplicationError(error.error, f"component '{name}': {error}") from error
        try:
            for other in references(definition):
                if other not in self._components:
                    raise ValueError(f"it refers to component '{other}', which is not there")
        except ValueError as error:
            raise invalid(name, str(error)) from error
        config = ComponentConfig(realm=realm, extra=extra, shared=self._options.shared)
        listener = Listener(
            self._handle_joined,
            self._handle_ready,
            self._handle_lost,
            self._handle_waiting,
            self._handle_ended,
        )
        try:
            return Component(name, definition, loaded, found, config, listener, self._reactor)
        except Exception as error:
            raise ApplicationError(
                "crossbar.error.class_import_failed",
                f"component '{name}': making '{definition.get('classname', 'its session')}' raised"
                f" {type(error).__name__}: {error}",
            ) from error

    def _find(self, name: str) -> Component:
        if name not in self._components:
            raise ApplicationError(
                "crossbar.error.no_such_object",
                f"no component '{name}' in worker '{self._options.worker}'",
            )
        return self._components[name]

    def _handle_joined(self, component: Component):
        self.log.debug("Component '{name}' joined", name=component.name)
        self._publish("on_component_joined", {"id": component.name})
        if component.name not in self._settled:
            self._settled.add(component.name)
            gc.collect()
            gc.freeze()
            gc.set_threshold(*COLLECT_AFTER_OBJECTS)

    def _handle_ready(self, component: Component):
        self._order.handle_ready(component)
        self._publish("on_component_ready", {"id": component.name, "ready": now()})

    def _handle_waiting(self, component: Component, reason: str):
        self._publish("on_component_waiting", {"id": component.name, "reason": reason})

    def _handle_lost(self, _component: Component):
        if not self._is_collecting:
            self._is_collecting = True
            self._reactor.callLater(LOST_COLLECTED_S, self._collect)

    def _collect(self):
        self._is_collecting = False
        gc.collect()

    def _handle_ended(self, component: Component, reason: str | None):
        name = component.name
        self._components.pop(name, None)
        self._order.handle_ended(component)
        if reason is None:
            self.log.info("Component '{name}' stopped", name=name)
            self._publish("on_component_stopped", {"id": name, "stopped": now()})
        else:
            self._failed.add(name)
            self._publish("on_component_failed", {"id": name, "reason": reason})
        if name not in self._restarting:
            self._apply_policy(name, reason)

    def _apply_policy(self, name: str, reason: str | None):
        """End the process if its policy says so now that a component has ended or failed."""
        policy = self._options.shutdown
        if policy == LAST_STOPPED:
            self._look_for_last()
            return
        if self._is_shutting_down:
            return
        if reason is not None and policy in (ANY_FAILED, ANY_STOPPED):
            self.log.info("Component '{name}' failed: shutting down.", name=name)
        elif policy == ANY_STOPPED:
            self.log.info("Component '{name}' stopped: shutting down.", name=name)
        else:
            return
        code = 0 if reason is None else 1
        # Not from within what a component calls, nor before the controller has its answer.
        self._reactor.callLater(0, self.shutdown, code)

    def _look_for_last(self):
        """End the process if that was the last component, and no start of another is to come."""
        if self._components or self._restarting:
            return
        if self._is_shutting_down:
            self.log.info(LAST_WORDS)
            return
        if self._looking is not None:
            cancel(self._looking)
        quiet_s = self._last_start_s + START_FOLLOWS_S - self._reactor.seconds()
        self._looking = self._reactor.callLater(max(quiet_s, 0), self._end_if_empty)

    def _end_if_empty(self):
        if not self._components and not self._restarting and not self._is_shutting_down:
            self.log.info(LAST_WORDS)
            self.shutdown(1 if self._failed else 0)

    def _publish(self, event: str, details: dict):
        session = self._management
        if session is not None and session.is_attached():
            session.publish(f"crossbar.worker.{self._options.worker}.{event}", details)


class Management(ApplicationSession):
    """The host's session in the management realm."""

    def __init__(self, host: Host, options: Options):
        super().__init__(ComponentConfig(realm=REALM))
        self._host = host
        self._options = options
        # Whether the node said goodbye too.
        self.has_left = False

    async def onJoin(self, details):
        """Offer the procedures, then say that the worker is ready."""
        host, prefix = self._host, f"crossbar.worker.{self._options.worker}"
        procedures = {
            "start_component": host.start_component,
            "stop_component": host.stop_component,
            "restart_component": host.restart_component,
            "get_component": host.get_component,
            "get_components": host.get_components,
            "get_process_info": host.get_process_info,
            "shutdown": host.request_shutdown,
        }
        for name, function in procedures.items():
            await self.register(checked(function), f"{prefix}.{name}")
        host.attach(self)
        ready = {
            "id": self._options.worker,
            "pid": os.getpid(),
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "reactor": reactor_name(self._host._reactor),
            "version": package_version(),
        }
        await self.publish(
            f"{prefix}.on_worker_ready", ready, options=PublishOptions(acknowledge=True)
        )

    def onLeave(self, details):
        """Close the connection."""
        self.has_left = details.reason != CloseDetails.REASON_TRANSPORT_LOST
        self.disconnect()

    def onUserError(self, fail, msg):
        """Refusals are answers, and were logged where they were decided."""
        if not isinstance(fail.value, ApplicationError):
            super().onUserError(fail, msg)


def reactor_name(reactor) -> str:
    """Return the reactor's name, such as EPollReactor."""
    return type(reactor).__name__


def package_version() -> str | None:
    """Return the version of this package, or None where it runs uninstalled."""
    try:
        return version("crosstie")
    except PackageNotFoundError:
        return None


def invalid(name: str, text: str) -> ApplicationError:
    """Return the error of a definition that says something wrong."""
    return ApplicationError("crossbar.error.invalid_configuration", f"component '{name}': {text}")


_ENDING = threading.Event()


def end_in_time(exit_code: int) -> None:
    """End the process from another thread if this one does not in time, for a component's sake."""
    if _ENDING.is_set():
        return
    _ENDING.set()

    def end():
        print(
            "A component does not let the worker end: cut off,"
            " the connection to the node controller too",
            file=sys.stderr,
        )
        os._exit(exit_code)

    timer = threading.Timer(SHUTDOWN_MOST_S, end)
    timer.daemon = True
    timer.start()
