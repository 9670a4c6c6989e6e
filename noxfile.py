"""The trainer's tests under each rsl-rl that a simulator pins; `make test-rsl-rl` runs them all.

A session's environment lies over the one that nox runs in: only rsl-rl is its own, and torch there once.
"""

import sysconfig
from pathlib import Path

import nox

ISAAC_LAB_S, MJLAB_S = "5.5.1", "5.4.2"
FOUND = """
import importlib.metadata, sys, rsl_rl
version = importlib.metadata.version("rsl-rl-lib")
assert version == sys.argv[1], f"rsl-rl-lib {version}"
assert rsl_rl.__file__.startswith(sys.prefix), rsl_rl.__file__
"""

nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"


@nox.session
@nox.parametrize("rsl_rl", [nox.param(version, id=version) for version in (MJLAB_S, ISAAC_LAB_S)])
def trainer(session: nox.Session, rsl_rl: str) -> None:
    """tests/trainer, with what comes after `--` for pytest."""
    below = sysconfig.get_path("purelib")
    if not (Path(below) / "torch").is_dir():
        session.error("run it in the environment that `make test` makes: make test-rsl-rl")
    own = session.run(
        "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", silent=True, log=False
    )
    try:
        session.install("--no-deps", f"rsl-rl-lib=={rsl_rl}")
    except nox.command.CommandFailed:
        session.skip(f"pip could not install rsl-rl-lib=={rsl_rl} (its messages are above)")
    # As a site directory, and not just as a path, so that editable installs in it are found too.
    (Path(str(own).strip()) / "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")
    session.run("python", "-c", FOUND, rsl_rl)
    session.run("python", "-m", "pytest", "tests/trainer", *session.posargs)
