"""Many commands, each a process of its own, without loading Hydra anew for each."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

SERVER = """
import json, os, signal, sys, traceback
import canard_hydra.app, canard_hydra.explain, canard_hydra.multirun, canard_hydra.submit, canard.client

answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["directory"])
        status = 70
        try:
            signal.alarm(asked["limit_s"])
            status = canard_hydra.app.run(asked["arguments"])
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    print(json.dumps(os.waitstatus_to_exitcode(ended)), file=answers, flush=True)
"""
LIMIT_S = 60


class ForkedCommands:
    """`run([...])` is `canard-hydra ...`; ended with `close`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, arguments: Sequence[str], *, directory: Path, environment: Mapping[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        with tempfile.TemporaryDirectory() as scratch:
            out, err = Path(scratch, "out"), Path(scratch, "err")
            asked: dict[str, Any] = {
                "arguments": list(arguments),
                "environment": dict(environment),
                "directory": str(directory),
                "out": str(out),
                "err": str(err),
                "limit_s": LIMIT_S,
            }
            self._stdin.write(json.dumps(asked) + "\n")
            self._stdin.flush()
            status = json.loads(self._stdout.readline())
            return subprocess.CompletedProcess(list(arguments), status, out.read_text(), err.read_text())

    def close(self) -> None:
        self._stdin.close()
        self._server.wait(LIMIT_S)
        self._stdout.close()

    @property
    def _stdin(self) -> IO[str]:
        assert self._server.stdin is not None
        return self._server.stdin

    @property
    def _stdout(self) -> IO[str]:
        assert self._server.stdout is not None
        return self._server.stdout
