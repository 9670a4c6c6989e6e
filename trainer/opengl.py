"""MUJOCO_GL: which OpenGL MuJoCo draws with. It is read once, when mujoco is imported, and can break that.

What a setting can do is seen in a process of its own: a driver may end the process that asks it.
"""

import importlib.util
import os
import subprocess
import sys

VARIABLE = "MUJOCO_GL"
DISABLED = "disable"
WITHOUT_DISPLAY = ("egl", "osmesa")
TRIAL_TIMEOUT_S = 60.0

WANTED = {
    "egl": "libEGL (apt-get install libegl1 libgl1, or the GPU's driver)",
    "osmesa": "libOSMesa (apt-get install libosmesa6)",
    "glfw": "a display",
}

TRIAL = """
import os
try:
    import mujoco
    print("imported")
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    renderer = mujoco.Renderer(model, 16, 16)
    renderer.update_scene(mujoco.MjData(model))
    renderer.render()
    print("drawn")
except BaseException as error:
    print(f"{type(error).__name__}: {error}".partition(chr(10))[0])
os.sys.stdout.flush()
os._exit(0)
"""


def settle(*, drawing: bool) -> str | None:
    """Set MUJOCO_GL so that mujoco can be imported, and can draw if that is possible. Call it before it is.

    Returns:
        What is wrong, in words for people: with the setting that was found, or, where there was none, with
        this machine, if pictures will be wanted. None if nothing is.
    """
    if sys.platform != "linux" or importlib.util.find_spec("mujoco") is None:
        return None
    asked = os.environ.get(VARIABLE, "").strip().lower()
    if asked:
        return _keep_if_it_works(asked, drawing=drawing)
    if drawing:
        return _choose()
    if importlib.util.find_spec("mjlab") is not None:  # takes EGL by itself, also where there is none
        _keep_if_it_works("egl", drawing=False)
    return None


def _keep_if_it_works(backend: str, *, drawing: bool) -> str | None:
    seen = _tried(backend)
    imported, drawn = "imported" in seen, "drawn" in seen
    os.environ[VARIABLE] = backend if imported else DISABLED
    if drawn or (imported and not drawing):
        return None
    wants = f"it needs {WANTED[backend]}" if backend in WANTED else f"it can be {', '.join(WANTED)}"
    effect = "MuJoCo cannot draw" if imported else "MuJoCo cannot be imported, so drawing is switched off"
    return f"with {VARIABLE}={backend} {effect} ({seen[-1]}); {wants}; or unset {VARIABLE}"


def _choose() -> str | None:
    reasons = []
    for backend in (*WITHOUT_DISPLAY, *(["glfw"] if os.environ.get("DISPLAY") else [])):
        seen = _tried(backend)
        if "drawn" in seen:
            os.environ[VARIABLE] = backend
            return None
        reasons.append(f"{backend} needs {WANTED[backend]} ({seen[-1]})")
    os.environ[VARIABLE] = DISABLED
    return f"MuJoCo cannot draw on this machine: {'; '.join(reasons)}"


def _tried(backend: str) -> list[str]:
    """How far mujoco comes: "imported", "drawn", else last what went wrong."""
    try:
        ended = subprocess.run(
            [sys.executable, "-c", TRIAL],
            env={**os.environ, VARIABLE: backend},
            capture_output=True,
            text=True,
            timeout=TRIAL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [f"no answer within {TRIAL_TIMEOUT_S:g} s"]
    lines = ended.stdout.split("\n")[:-1]
    return [*lines, f"exit code {ended.returncode}"] if ended.returncode else lines
