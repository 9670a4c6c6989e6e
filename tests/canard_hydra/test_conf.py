"""conf/ itself: every option composes to what was reviewed, and the options of a group fit each other."""

import itertools
import os
import re
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from canard.models import TrainingConfig
from canard_hydra.conf_dir import conf_dir
from canard_hydra.fields import KEY_OF_FIELD, NETWORK_FIELDS, PPO_FIELDS, SECTIONS, training_fields

CONF = conf_dir()
SNAPSHOTS = Path(__file__).parent / "snapshots"
GROUPS = sorted(path.name for path in CONF.iterdir() if path.is_dir())
OPTIONS = sorted((group, path.stem) for group in GROUPS for path in (CONF / group).glob("*.yaml"))
GROUPS_OF_KEYS = ("task", "ppo", "network", "platform")
"""Whose options are sections of the configuration; those of the others speak of the whole."""


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARD_API_URL", "https://canard.example.org")


def composed(*overrides: str):
    with initialize_config_dir(config_dir=str(CONF), version_base="1.3", job_name="test"):
        return compose("config", overrides=list(overrides))


def keys_of(group: str, option: str) -> set[str]:
    loaded = OmegaConf.load(CONF / group / f"{option}.yaml")
    return {str(key) for key in loaded if key != "defaults"}


@pytest.mark.parametrize(("group", "option"), OPTIONS, ids="/".join)
def test_an_option_composes_to_what_was_reviewed(group, option):
    """A change of conf/ shows up as a change of a snapshot: CANARD_UPDATE_SNAPSHOTS=1 writes them anew."""
    snapshot = SNAPSHOTS / f"{group}-{option}.yaml"

    text = OmegaConf.to_yaml(composed(f"{group}={option}"))

    if os.environ.get("CANARD_UPDATE_SNAPSHOTS") == "1":
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(text)
    assert text == snapshot.read_text()


def test_there_is_no_snapshot_of_an_option_that_is_gone():
    assert {path.stem for path in SNAPSHOTS.glob("*.yaml")} == {"-".join(option) for option in OPTIONS}


@pytest.mark.parametrize(("group", "option"), OPTIONS, ids="/".join)
def test_a_file_opens_with_when_to_choose_it(group, option):
    lines = (CONF / group / f"{option}.yaml").read_text().splitlines()

    opening = lines[1] if lines[0].startswith("# @package") else lines[0]
    assert re.match(r"# Choose \w+", opening)


@pytest.mark.parametrize("group", GROUPS_OF_KEYS)
def test_every_option_of_a_group_declares_the_same_keys(group):
    """hydra-ecosystem/hydra#2888: or a swept group and a key of it would not go together."""
    declared = {option: keys_of(group, option) for name, option in OPTIONS if name == group}

    assert len(set(map(frozenset, declared.values()))) == 1, declared


@pytest.mark.parametrize(
    ("group", "option"), [one for one in OPTIONS if one[0] in GROUPS_OF_KEYS], ids="/".join
)
def test_every_key_of_a_group_can_be_set_with_each_option(group, option):
    """So that Hydra takes `-m group=a,b group.key=v`: it sets the key with the default and each option."""
    keys = keys_of(group, option) - {"reward_weights"}

    config = composed(f"{group}={option}", *(f"{group}.{key}=null" for key in sorted(keys)))

    assert all(config[group][key] is None for key in keys)


@pytest.mark.parametrize(
    "pair",
    [
        (f"{group}={option}", f"{other}={choice}")
        for (group, option), (other, choice) in itertools.combinations(OPTIONS, 2)
        if group != other
    ],
    ids=" ".join,
)
def test_every_pair_of_options_is_a_valid_training(pair):
    config = composed(*pair)
    if OmegaConf.is_missing(config.task, "code_url"):
        config.task.code_url = "https://github.com/example/robots"

    fields = training_fields(OmegaConf.to_container(config, resolve=True, throw_on_missing=True))

    assert TrainingConfig.model_validate(fields).task_name


def test_every_field_of_a_training_has_one_place():
    assert set(KEY_OF_FIELD) == set(TrainingConfig.model_fields)
    assert len(set(KEY_OF_FIELD.values())) == len(KEY_OF_FIELD)


def test_the_sections_are_those_of_the_model():
    config = composed()

    assert tuple(config.ppo) == PPO_FIELDS
    assert tuple(config.network) == NETWORK_FIELDS
    assert set(config.task) == set(SECTIONS["task"])


def test_the_defaults_are_those_of_the_documents():
    config = composed("task=g1", "task.code_url=x")

    model = TrainingConfig(task_name="x")
    for name in ("seed", "gpu_count", "video_enabled", "video_interval", "checkpoint_url"):
        assert config[name] == getattr(model, name)


@pytest.mark.parametrize("key", ["num_envs", "max_iterations"])
def test_what_a_task_recommends_yields_to_the_command_line(key):
    assert composed("task=go2_standing")[key] == composed("task=go2_standing").task[key]
    assert composed("task=go2_standing", f"{key}=64")[key] == 64
    assert composed("task=go2_standing", f"task.{key}=65")[key] == 65


def test_a_task_that_recommends_nothing_takes_the_documented_values():
    config = composed("~task.num_envs", "~task.max_iterations")

    assert (config.num_envs, config.max_iterations) == (1000, 1500)


def test_the_ppo_that_a_task_recommends_yields_to_the_command_line():
    assert composed("task=halfcheetah").ppo == composed("ppo=mujoco").ppo
    assert composed("task=halfcheetah", "ppo=careful").ppo == composed("ppo=careful").ppo
    assert composed("task=halfcheetah", "ppo.learning_rate=1e-4").ppo.learning_rate == 1e-4
