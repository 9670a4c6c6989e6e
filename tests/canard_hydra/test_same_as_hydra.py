"""Members that values were put into are the members that Hydra would have composed, or the same refusals."""

import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.singleton import Singleton
from hydra.types import RunMode
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from canard_hydra import multirun
from canard_hydra.app import VERSION_BASE
from canard_hydra.errors import ExperimentError
from canard_hydra.multirun import _in_words, compose_members, members_overrides

CONF = Path(__file__).parents[2] / "conf"
PARTS = 4
LISTS_A_PART = int(os.environ.get("CANARD_OVERRIDE_LISTS", "400")) // PARTS
"""Random override lists that are composed both ways."""

TRICKY_TASK = """\
task_name: InvertedPendulum-v5
code_url: null
code_ref: ${oc.select:own.ref,main}
reward_weights:
  gain: ${ppo.gamma}
  loss: null
num_envs: 16
max_iterations: ${own.iterations}
"""
OWN = """\
# @package _global_
own:
  iterations: ${own.base}
  base: 60
  ref: null
  pair: [1, "${own.base}"]
  half: ${half:${own.base}}
tags:
  note: ${oc.env:HOME}
"""
INTERPOLATED = """\
# @package _global_
name: run-${seed}-${hydra:job.num}
ppo:
  entropy_coef: ${oc.select:ppo.learning_rate,0.1}
network:
  actor_hidden_dims: [8, "${oc.select:task.num_envs,4}"]
"""

GOOD = {
    "ppo.learning_rate": ["1e-4", "3e-4", "0.001", "1e-05", "1", "null", ".5", "1_0"],
    "ppo.gamma": ["0.9", "0.99", "1", "null", "${ppo.lam}"],
    "ppo.schedule": ["fixed", "adaptive", "'fixed'", "null"],
    "ppo.num_mini_batches": ["1", "2", "1.0", "1e3", "+5", "null"],
    "network.actor_hidden_dims": ["[8,8]", "[64]", "null", "[16, 8, 4]"],
    "network.activation": ["elu", "relu", "on", "null"],
    "seed": ["0", "1", "2", "10", "null", "1.0", "${num_envs}"],
    "num_envs": ["8", "16", "${oc.select:task.num_envs,1}"],
    "task.num_envs": ["4", "32"],
    "task.max_iterations": ["7", "9", "${oc.select:seed,3}"],
    "task.code_ref": ["main", "'12e4567'", "0012345", "v1.0", "null"],
    "task.task_name": ["InvertedPendulum-v5", "Canard-Cartpole-v0"],
    "task": ["cartpole", "inverted_pendulum", "tricky"],
    "ppo": ["default", "mujoco", "fixed"],
    "network": ["default", "small"],
    "experiment": ["own", "interpolated"],
    "+experiment": ["own"],
    "name": ["one", "two", "'1'", "run-${seed}", "${hydra:job.num}", "${hydra:job.override_dirname}", "null"],
    "+tags.team": ["a", "legs"],
    "checkpoint_url": ["null", "runs/a/b.pt", "./here.pt"],
    "mode": ["plan"],
    "max_iterations": ["5", "6", "7"],
    "video_enabled": ["true", "false"],
    "++ppo.gamma": ["0.5", "null"],
    "~tags": [""],
}
ODD = {
    **GOOD,
    "ppo.learning_rate": ["true", "'x'", "-1", "nan"],
    "ppo.gamma": ["inf", "2", "${nowhere}"],
    "ppo.schedule": ["none", '"null"', "1", "???"],
    "ppo.num_mini_batches": ["1.5", "007", "''"],
    "network.actor_hidden_dims": ["[]", "[1,[2]]", "[1.5]", "[a]", "5", "{a:1}"],
    "network.activation": ["12", "'1e5'"],
    "seed": ["-1", "abc", "0x1", "1 2"],
    "num_envs": ["null", "0"],
    "task.num_envs": ["null", "x"],
    "task.max_iterations": ["null", "${seed}"],
    "task.code_ref": ["12e4567", "1.5"],
    "task.task_name": ["3.10", "''"],
    "task.reward_weights.alive": ["1", "2.5", "null", "-1", "'1'", "[1]"],
    "task.reward_weights.gain": ["3", "null", "${own.base}"],
    "+task.reward_weights.new": ["1", "2", "null"],
    "+ppo.typo": ["1"],
    "ppo.lr": ["1"],
    "task": ["nope"],
    "ppo": ["{gamma: 0.5}", "null"],
    "experiment": ["null"],
    "name": ["1", "3.10"],
    "tags.team": ["a"],
    "+tags.team": ["${seed}"],
    "own.base": ["1", "2", "null"],
    "own.ref": ["dev", "77", "null"],
    "max_iterations": ["${own.half}"],
    "video_enabled": ["yes", "1", "null"],
}


OTHERS = [key for key in sorted(ODD) if key[0] in "+~" or "." not in key or key not in GOOD]
LEAVES = [key for key in sorted(ODD) if key not in OTHERS or key in ("seed", "num_envs", "max_iterations")]


@pytest.fixture(scope="module")
def loader(tmp_path_factory) -> Iterator:
    folder = shutil.copytree(CONF, tmp_path_factory.mktemp("conf") / "conf")
    (folder / "task" / "tricky.yaml").write_text(TRICKY_TASK)
    (folder / "experiment" / "own.yaml").write_text(OWN)
    (folder / "experiment" / "interpolated.yaml").write_text(INTERPOLATED)
    before = Singleton.get_state()
    with warnings.catch_warnings():
        # OmegaConf 2.4 warns of this name, whose new one means something else in 2.3.
        warnings.simplefilter("ignore")
        OmegaConf.register_new_resolver("half", lambda whole: int(whole) // 2, replace=True)
    with initialize_config_dir(str(folder), job_name="canard_hydra", **VERSION_BASE):
        yield GlobalHydra.instance().config_loader()
    OmegaConf.clear_resolver("half")
    Singleton.set_state(before)


@st.composite
def command_lines(draw) -> list[str]:
    keys = draw(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=3, unique=True))
    if draw(st.integers(0, 2)) == 0:
        keys += draw(st.lists(st.sampled_from(OTHERS), min_size=1, max_size=2, unique=True))
    line = []
    for key in keys:
        odd = key not in GOOD or draw(st.integers(0, 12)) == 0
        values = draw(
            st.lists(st.sampled_from((ODD if odd else GOOD)[key]), min_size=1, max_size=4, unique=True)
        )
        line.append(key if key.startswith("~") else f"{key}={','.join(values)}")
    return line


def outcome(loader, base, batch, *, whole: bool) -> tuple[list[str] | str, int]:
    """The members, or what is said instead of them; and how many Hydra did not compose."""
    try:
        members = compose_members(loader, base, batch, first_index=0, whole=whole)
    except ExperimentError as error:
        return str(error), 0
    return [_in_words(member.composed) for member in members], sum(one.config is None for one in members)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(900)
def test_random_command_lines_make_what_hydra_makes_of_them(loader, monkeypatch, part):
    monkeypatch.setattr(multirun, "SAMPLE", 0)
    monkeypatch.setattr(multirun.MemberComposer, "first_difference", lambda *_, **__: None)
    compared = {"lists": 0, "set apart": 0}

    @seed(part)
    @settings(max_examples=700, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(command_lines())
    def same(line: list[str]) -> None:
        if compared["lists"] >= LISTS_A_PART:
            return
        try:
            base = loader.load_configuration("config", line, run_mode=RunMode.MULTIRUN)
            batch = members_overrides(base, OverridesParser.create().parse_overrides(line))[:12]
        except Exception:  # not a command line that comes as far as the members
            return
        by_hydra, _ = outcome(loader, base, batch, whole=True)
        ours, set_apart = outcome(loader, base, batch, whole=False)
        assert ours == by_hydra
        compared["lists"] += len(batch)
        compared["set apart"] += set_apart

    same()
    assert compared["lists"] >= LISTS_A_PART
    assert compared["set apart"] > 0, "all were composed by Hydra both times"


@pytest.mark.parametrize("choice", ["ppo=fixed", "network=small", "task=cartpole,inverted_pendulum"])
def test_members_with_a_chosen_option_below_which_values_are_swept_are_not_composed_one_by_one(
    loader, choice
):
    line = [choice, "ppo.gamma=0.9,0.91,0.92,0.93", "task.num_envs=1,2,3,4,5"]
    base = loader.load_configuration("config", line, run_mode=RunMode.MULTIRUN)
    batch = members_overrides(base, OverridesParser.create().parse_overrides(line))

    by_hydra, _ = outcome(loader, base, batch, whole=True)
    ours, set_apart = outcome(loader, base, batch, whole=False)

    assert ours == by_hydra
    options = choice.count(",") + 1
    assert set_apart >= len(batch) - options - multirun.SAMPLE
