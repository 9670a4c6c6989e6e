"""A network between two programs of this machine that a test can cut and mend."""

import contextlib
import socket
import threading
from collections.abc import Callable


class Relay:
    """Passes connections on to `port` of loopback. Cut, it drops those it has and refuses new ones."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._port = self._listening.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._cut = False
        self._closed = False
        self.on_bytes: Callable[[bytes], None] | None = None
        """Told what clients send, before it is passed on."""
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def cut(self) -> None:
        with self._lock:
            self._cut = True
        self.drop_clients()

    def drop_clients(self) -> None:
        """End the connections there are; new ones are still taken."""
        with self._lock:
            for one in self._open:
                _shut(one)

    def mend(self) -> None:
        with self._lock:
            self._cut = False

    def close(self) -> None:
        self.cut()
        self._closed = True
        _shut(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=10)
            except OSError:
                return
            with server:
                with self._lock:
                    if self._cut:
                        return
                    self._open |= {client, server}
                back = threading.Thread(target=self._pump, args=(server, client, False), daemon=True)
                back.start()
                self._pump(client, server, True)
                back.join()
                with self._lock:
                    self._open -= {client, server}

    def _pump(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        try:
            while chunk := source.recv(65536):
                if is_request and self.on_bytes is not None:
                    self.on_bytes(chunk)
                target.sendall(chunk)
        except OSError:
            pass
        finally:
            _shut(target)


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
