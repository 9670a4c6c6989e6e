"""Real git repositories, made by the test that uses them."""

import subprocess
from pathlib import Path

HOVER = '''
import gymnasium
import numpy as np


class Hover(gymnasium.Env):
    """Hold a point mass at height zero."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.state, {}

    def step(self, action):
        height, speed = self.state
        speed += 0.05 * float(np.clip(action[0], -1, 1))
        height += 0.05 * speed
        self.state = np.array([height, speed], np.float32)
        return self.state, 1.0 - min(abs(height), 1.0), bool(abs(height) > 3), False, {}


gymnasium.register("Hover-v0", entry_point=Hover, max_episode_steps=50)
'''

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1"
dependencies = []

[tool.setuptools]
packages = ["{package}"]
"""


class Repository:
    """A work tree with its git directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    @property
    def url(self) -> str:
        return str(self.root)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: dict[str, str] | None = None) -> str:
        """Write the files, commit everything; the full SHA."""
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a commit")
        return self.git("rev-parse", "HEAD")


def hover_project(package: str = "hover_env") -> dict[str, str]:
    """An installable project with an environment `Hover-v0`."""
    return {
        "pyproject.toml": PYPROJECT.format(name=package.replace("_", "-"), package=package),
        f"{package}/__init__.py": HOVER,
    }
