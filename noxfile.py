"""The trainer's tests under each rsl-rl that a simulator pins, the Hydra app's under each Hydra; Optuna's.

A session's environment lies over the one that nox runs in: only what it adds is its own, torch there once.
"""

import sysconfig
from pathlib import Path

import nox

ISAAC_LAB_S, MJLAB_S = "5.5.1", "5.4.2"
OPTUNA_SWEEPER = "1.3.0"
HYDRAS = {"1.3": "hydra-core==1.3.8", "1.4": "hydra-core==1.4.0rc3"}
FOUND = """
import importlib.metadata, sys, rsl_rl
version = importlib.metadata.version("rsl-rl-lib")
assert version == sys.argv[1], f"rsl-rl-lib {version}"
assert rsl_rl.__file__.startswith(sys.prefix), rsl_rl.__file__
"""
HYDRA_FOUND = """
import hydra, sys
assert hydra.__version__ == sys.argv[1].partition("==")[2], f"hydra {hydra.__version__}"
"""

nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"


@nox.session
@nox.parametrize("rsl_rl", [nox.param(version, id=version) for version in (MJLAB_S, ISAAC_LAB_S)])
def trainer(session: nox.Session, rsl_rl: str) -> None:
    """tests/trainer, with what comes after `--` for pytest."""
    try:
        session.install("--no-deps", f"rsl-rl-lib=={rsl_rl}")
    except nox.command.CommandFailed:
        session.skip(f"pip could not install rsl-rl-lib=={rsl_rl} (its messages are above)")
    _lie_over_this_environment(session)
    session.run("python", "-c", FOUND, rsl_rl)
    session.run("python", "-m", "pytest", "tests/trainer", *session.posargs)


@nox.session
@nox.parametrize("hydra", [nox.param(requirement, id=line) for line, requirement in HYDRAS.items()])
def hydra(session: nox.Session, hydra: str) -> None:
    """2,000 random override lists, composed by us and by Hydra; or what comes after `--` for pytest."""
    _lie_over_this_environment(session)
    session.install(hydra)
    session.run("python", "-c", HYDRA_FOUND, hydra)
    tests = session.posargs or ["-n", "auto", "tests/canard_hydra/test_same_as_hydra.py"]
    session.run("python", "-m", "pytest", *tests, env={"CANARD_OVERRIDE_LISTS": "2000"})


@nox.session
def optuna(session: nox.Session) -> None:
    """Hydra's sweeper of Optuna, whose old Optuna nobody else here should get."""
    _lie_over_this_environment(session)
    # Its requirement of Hydra admits release candidates; the one below is found to do.
    session.install(f"hydra-optuna-sweeper=={OPTUNA_SWEEPER}")
    session.run("python", "-m", "pytest", "tests/canard_hydra/test_optuna.py", *session.posargs)


def _lie_over_this_environment(session: nox.Session) -> None:
    below = sysconfig.get_path("purelib")
    if not (Path(below) / "torch").is_dir():
        session.error("run it in the environment that `make test` makes, as .venv/bin/nox")
    own = session.run(
        "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", silent=True, log=False
    )
    # As a site directory, and not just as a path, so that editable installs in it are found too.
    (Path(str(own).strip()) / "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")
