"""The example of the public documents, with api_url changed and a repository of the test's own."""

import subprocess
from pathlib import Path

import pytest

from canard import Client

pytestmark = pytest.mark.e2e

ENVIRONMENT = '''
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


gymnasium.register("Hover-v0", entry_point="hover_env:Hover", max_episode_steps=50)
'''

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "hover-env"
version = "0.1"

[tool.setuptools]
packages = ["hover_env"]
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "hover-env"
    (root / "hover_env").mkdir(parents=True)
    (root / "hover_env" / "__init__.py").write_text(ENVIRONMENT)
    (root / "pyproject.toml").write_text(PYPROJECT)
    git = ["git", "-C", str(root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "Hover"], check=True)
    return root


@pytest.mark.timeout(240)
def test_the_documented_example_runs_as_written(platform, repository: Path, tmp_path: Path, capsys):
    client = Client(api_url=platform.url)

    run = client.submit_training_run(
        name="hover-v1",
        task_name="Hover-v0",
        code_url=str(repository),
        num_envs=8,
        max_iterations=2,
        gpu_count=2,
    )
    printed = capsys.readouterr().out
    assert "$" in printed
    assert run.dashboard_url in printed

    run.wait_for_completion(show_progress=True)
    metrics = run.get_metrics()
    assert metrics.training.current_iteration == 2
    print(f"Final reward: {metrics.training.mean_reward or float('nan'):.2f}")

    checkpoint = run.download_best_checkpoint(tmp_path / "checkpoints")
    assert checkpoint.parent == tmp_path / "checkpoints"
    assert checkpoint.stat().st_size > 0
    head = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert [task.code_commit for task in client.get_run_tasks(run.slug)] == [head]
    client.close()
