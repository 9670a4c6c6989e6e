"""A user's own ./conf: its groups come first; with a config.yaml of its own it is the primary one."""

from pathlib import Path

import pytest

from canard_hydra.conf_dir import conf_dir

REMOTE = "platform=self_hosted"


@pytest.fixture
def own(directory: Path) -> Path:
    (directory / "conf" / "task").mkdir(parents=True)
    return directory / "conf"


def test_an_own_task_stands_beside_ours(canard_hydra, service, own):
    (own / "task" / "mine.yaml").write_text("task_name: Mine-v0\nnum_envs: 32\n")

    done = canard_hydra("-m", REMOTE, "task=mine,cartpole")

    assert done.returncode == 0, done.stderr
    assert [(task["task_name"], task["num_envs"]) for task in service.tasks] == [
        ("Mine-v0", 32),
        ("Canard-Cartpole-v0", 256),
    ]


def test_an_own_option_is_found_before_ours_of_the_same_name(canard_hydra, service, own):
    (own / "task" / "cartpole.yaml").write_text("task_name: Mine-v0\n")

    done = canard_hydra(REMOTE)

    assert done.returncode == 0, done.stderr
    assert service.base["task_name"] == "Mine-v0"
    assert service.base["num_envs"] == 1000


def test_an_own_config_is_primary_and_ours_stands_behind_it(canard_hydra, service, own):
    (own / "task" / "mine.yaml").write_text("task_name: Mine-v0\n")
    (own / "config.yaml").write_text(
        "defaults:\n  - _self_\n  - task: mine\n  - ppo: careful\n  - platform: self_hosted\n"
        "  - override hydra/launcher: canard\n  - override hydra/sweeper: canard\n"
        "name: ours\nseed: 3\n"
    )

    done = canard_hydra("-m", "ppo.gamma=0.9,0.8")

    assert done.returncode == 0, done.stderr
    assert service.submits[0]["name"] == "ours"
    assert service.base["task_name"] == "Mine-v0"
    assert service.base["seed"] == 3
    assert service.base["learning_rate"] == 1e-4
    assert [task["gamma"] for task in service.tasks] == [0.9, 0.8]


def test_an_own_config_without_the_launcher_is_told_what_to_add(canard_hydra, service, own):
    (own / "config.yaml").write_text("defaults:\n  - task: cartpole\n  - platform: self_hosted\nseed: 0\n")

    done = canard_hydra("-m", "seed=1,2")

    assert done.returncode == 2
    assert "- override hydra/launcher: canard" in done.stderr
    assert not service.submits


def test_the_repositorys_own_conf_is_no_users_conf(canard_hydra, service, directory):
    (directory / "conf").symlink_to(conf_dir())

    done = canard_hydra(REMOTE, "--info", "searchpath")

    assert done.stdout.count("file://") == 1


def test_a_directory_given_with_config_dir_is_searched_too(canard_hydra, service, tmp_path):
    (tmp_path / "more" / "task").mkdir(parents=True)
    (tmp_path / "more" / "task" / "mine.yaml").write_text("task_name: Mine-v0\n")

    done = canard_hydra("--config-dir", str(tmp_path / "more"), REMOTE, "task=mine")

    assert done.returncode == 0, done.stderr
    assert service.base["task_name"] == "Mine-v0"


def test_code_beside_the_configuration_is_sent_by_its_absolute_path(canard_hydra, service, directory):
    (directory / "robots").mkdir()

    canard_hydra(REMOTE, "task.code_url=robots")

    assert service.base["code_url"] == str(directory / "robots")
