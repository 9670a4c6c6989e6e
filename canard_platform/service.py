"""One running platform: the HTTP server and the dispatcher, each in its thread, started and stopped in order.

Stopping keeps the server up until the attempts have handed back: they need it to deliver their checkpoints.
"""

import logging
import socket
import threading

import uvicorn

from canard.errors import PlatformError
from canard_platform.api.app import create_app
from canard_platform.dispatcher import Dispatcher, Launch
from canard_platform.services import Services

log = logging.getLogger(__name__)

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0


class Service:
    """Runs `services` on a socket that listens already."""

    def __init__(self, services: Services, launch: Launch, listening: socket.socket) -> None:
        self._services = services
        self._dispatcher = Dispatcher(services, launch)
        self._halt = threading.Event()
        self._server = uvicorn.Server(
            uvicorn.Config(
                create_app(services),
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=2,
            )
        )
        self._http = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="http", daemon=True
        )
        self._dispatching = threading.Thread(
            target=self._dispatcher.run, args=(self._halt,), name="dispatcher", daemon=True
        )

    def start(self) -> None:
        """Returns when requests are answered.

        Raises:
            PlatformError: the server did not come up.
        """
        self._dispatcher.recover()
        self._http.start()
        if not self._await_server():
            raise PlatformError(f"the HTTP server did not start within {START_TIMEOUT_S:.0f} s")
        self._dispatching.start()

    def stop(self) -> None:
        """Take no more work, let the running attempts hand back, end."""
        self._services.stopping.set()
        self._halt.set()
        self._services.work.set()
        if self._dispatching.is_alive():
            self._dispatching.join(STOP_TIMEOUT_S)
        self._dispatcher.drain()
        self._server.should_exit = True
        if self._http.is_alive():
            self._http.join(STOP_TIMEOUT_S)

    def hurry(self) -> None:
        """Asked twice: attempts are killed instead of waited for."""
        for handle in self._services.executor.list():
            self._services.executor.cancel(handle, grace_s=0)

    def _await_server(self) -> bool:
        waited = threading.Event()
        for _ in range(int(START_TIMEOUT_S / 0.01)):
            if self._server.started:
                return True
            if not self._http.is_alive():
                return False
            waited.wait(0.01)
        return False
