"""Checkpoints that older rsl-rl really made, by old_checkpoints/make.py, act as they did there."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from rsl_rl.algorithms import PPO
from tensordict import TensorDict

from trainer import checkpoints
from trainer.errors import ConfigurationError
from trainer.fitting import fitted
from trainer.shapes import refuse_other_shapes

FOLDER = Path(__file__).parent / "old_checkpoints"
FILES = sorted(path.stem for path in FOLDER.glob("*.pt"))
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def told(name: str) -> dict[str, Any]:
    """What the version that made it said."""
    return json.loads((FOLDER / f"{name}.json").read_text())


class Observing:
    """As much of an environment as an algorithm is built from."""

    num_actions = 1

    def __init__(self, name: str) -> None:
        groups = {group: torch.tensor(rows) for group, rows in told(name)["observations"].items()}
        self.num_envs = len(groups["policy"])
        self.observations = TensorDict(groups, batch_size=[self.num_envs])


def built(env: Observing, variant: str, **change: Any) -> Any:
    """PPO of the installed rsl-rl with the networks of make.py."""
    network: dict[str, Any] = {"class_name": "MLPModel", "hidden_dims": [8, 6], "activation": "elu"}
    network["obs_normalization"] = variant in ("normalised", "privileged")
    if variant == "recurrent":
        network |= {"class_name": "RNNModel", "rnn_type": "lstm", "rnn_hidden_dim": 4, "rnn_num_layers": 1}
    kind = "HeteroscedasticGaussianDistribution" if variant == "heteroscedastic" else "GaussianDistribution"
    std_type = "log" if variant == "log" else "scalar"
    distribution = {"class_name": kind, "init_std": 1.0, "std_type": std_type, **change}
    return PPO.construct_algorithm(
        env.observations,
        env,
        {
            "num_steps_per_env": 4,
            "obs_groups": {"actor": ["policy"], "critic": [list(env.observations.keys())[-1]]},
            "actor": {**network, "distribution_cfg": distribution},
            "critic": dict(network),
            "algorithm": {"class_name": "PPO", "schedule": "adaptive", "desired_kl": 0.01},
            "multi_gpu": None,
        },
        "cpu",
    )


def loaded(name: str, **change: Any) -> tuple[Any, TensorDict, list[str]]:
    """An algorithm that goes on from the file, fixed observations, and what started anew."""
    env = Observing(name)
    algorithm = built(env, name.partition("_")[2], **change)
    contents, anew = fitted(checkpoints.load(FOLDER / f"{name}.pt"), algorithm)
    for network, model in (("actor", algorithm._raw_actor), ("critic", algorithm._raw_critic)):
        refuse_other_shapes(contents, model, key=f"{network}_state_dict", name=network)
    algorithm.load(contents, None, True)
    algorithm.eval_mode()
    return algorithm, env.observations, anew


def assert_acts_as_told(algorithm: Any, observations: TensorDict, answers: dict[str, Any]) -> None:
    with torch.inference_mode():
        means, values = algorithm.actor(observations), algorithm.critic(observations)
        algorithm.actor.reset(torch.ones(len(observations)))
        algorithm.actor(observations, stochastic_output=True)
    torch.testing.assert_close(means, torch.tensor(answers["mean"]), **CLOSE)
    torch.testing.assert_close(values, torch.tensor(answers["values"]), **CLOSE)
    torch.testing.assert_close(algorithm.actor.output_std, torch.tensor(answers["std"]), **CLOSE)


def new_name(old: str) -> str:
    """Of a parameter, as `{network}.{name}`; written apart from the code under test."""
    for before, after in (
        ("memory_a.", "actor.rnn."),
        ("memory_c.", "critic.rnn."),
        ("actor.mlp.", "actor.mlp."),
        ("critic.mlp.", "critic.mlp."),
        ("actor.rnn.", "actor.rnn."),
        ("critic.rnn.", "critic.rnn."),
        ("actor.distribution.", "actor.distribution."),
        ("actor.std", "actor.distribution.std_param"),
        ("actor.log_std", "actor.distribution.log_std_param"),
        ("std", "actor.distribution.std_param"),
        ("log_std", "actor.distribution.log_std_param"),
        ("actor.", "actor.mlp."),
        ("critic.", "critic.mlp."),
    ):
        if old.startswith(before):
            return after + old.removeprefix(before)
    raise AssertionError(old)


def momenta(algorithm: Any) -> dict[str, torch.Tensor]:
    return {
        f"{network}.{name}": algorithm.optimizer.state[parameter]["exp_avg"].flatten()
        for network, model in (("actor", algorithm._raw_actor), ("critic", algorithm._raw_critic))
        for name, parameter in model.named_parameters()
        if parameter in algorithm.optimizer.state
    }


def test_there_is_a_file_of_every_generation():
    assert {name[0] for name in FILES} == {"2", "3", "4", "5"}


@pytest.mark.parametrize("name", FILES)
def test_policy_values_and_noise_are_those_of_the_version_that_made_it(name: str):
    algorithm, observations, anew = loaded(name)

    assert anew == []
    assert_acts_as_told(algorithm, observations, told(name))


@pytest.mark.parametrize("name", FILES)
def test_each_momentum_goes_to_its_own_parameter_and_the_learning_rate_goes_on(name: str):
    algorithm, _, _ = loaded(name)

    wanted = {new_name(old): torch.tensor(values) for old, values in told(name)["momenta"].items()}
    got = momenta(algorithm)
    assert got.keys() == wanted.keys()
    for parameter, values in wanted.items():
        assert torch.equal(got[parameter], values), parameter
    assert algorithm.learning_rate == told(name)["learning_rate"]


@pytest.mark.parametrize("name", FILES)
def test_two_iterations_are_done(name: str):
    contents = checkpoints.load(FOLDER / f"{name}.pt")

    assert contents["iter"] == 1  # the index of the last one
    assert checkpoints.iteration_of(contents) == 2


@pytest.mark.parametrize(("name", "kept_as"), [("3.3.0_log", "scalar"), ("4.0.1_plain", "log")])
def test_a_noise_that_is_kept_otherwise_is_converted_and_only_its_momentum_starts_anew(
    name: str, kept_as: str
):
    algorithm, observations, [anew] = loaded(name, std_type=kept_as)

    assert_acts_as_told(algorithm, observations, told(name))
    assert "std_param" in anew
    wanted = {new_name(old): torch.tensor(values) for old, values in told(name)["momenta"].items()}
    got = momenta(algorithm)
    assert wanted.keys() - got.keys() == {name for name in wanted if "std_param" in name}
    assert all(torch.equal(values, wanted[parameter]) for parameter, values in got.items())


@pytest.mark.parametrize("damage", ["absent", "of another optimizer", "shapes"])
def test_an_optimizer_state_that_does_not_fit_starts_anew_at_the_learning_rate_of_then(
    tmp_path: Path, damage: str
):
    contents = torch.load(FOLDER / "3.3.0_normalised.pt", weights_only=True)
    saved = contents["optimizer_state_dict"]
    if damage == "absent":
        del contents["optimizer_state_dict"]
    if damage == "of another optimizer":
        saved["param_groups"][0]["params"].append(13)
    if damage == "shapes":
        saved["state"][3]["exp_avg"] = torch.zeros(7, 7)
    torch.save(contents, tmp_path / "model_1.pt")
    env = Observing("3.3.0_normalised")
    algorithm = built(env, "normalised")

    fitting, anew = fitted(checkpoints.load(tmp_path / "model_1.pt"), algorithm)
    algorithm.load(fitting, None, True)

    assert anew == ["the optimizer's momenta"]
    assert momenta(algorithm) == {}
    assert algorithm.learning_rate == (
        1e-3 if damage == "absent" else told("3.3.0_normalised")["learning_rate"]
    )


def test_what_is_no_actor_and_critic_is_named(tmp_path: Path):
    student = {"student.0.weight": torch.zeros(2, 2), "teacher.0.weight": torch.zeros(2, 2)}
    torch.save({"model_state_dict": student, "iter": 3}, tmp_path / "model_3.pt")

    with pytest.raises(ConfigurationError, match=r"model_3\.pt.*student\.0\.weight"):
        checkpoints.load(tmp_path / "model_3.pt")


def test_an_old_file_with_objects_in_it_says_what_to_do(tmp_path: Path):
    contents = torch.load(FOLDER / "3.0.1_plain.pt", weights_only=True)
    contents["infos"] = {"made_in": Path("/tmp")}
    torch.save(contents, tmp_path / "model_1.pt")

    with pytest.raises(ConfigurationError, match=r"holds pathlib\S*Path.*'infos' to None"):
        checkpoints.load(tmp_path / "model_1.pt")


NETWORKS = {"actor_hidden_dims": [8, 6], "critic_hidden_dims": [8, 6], "seed": 0}
CARTPOLE = {"task_name": "Canard-Cartpole-v0", "num_envs": 8, **NETWORKS}
PENDULUM = {"task_name": "InvertedPendulum-v5", "num_envs": 8, **NETWORKS}
"""Each has 4 observations and 1 action; the second normalises observations."""


@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "config", "made_by"),
    [
        ("2.3.3_normalised", PENDULUM, "rsl-rl 2 or 3 and converted"),
        ("3.0.1_plain", CARTPOLE, "rsl-rl 2 or 3 and converted"),
        ("3.3.0_normalised", PENDULUM, "rsl-rl 2 or 3 and converted"),
        ("4.0.1_log", CARTPOLE, "rsl-rl 4 and converted"),
        ("5.0.1_normalised", PENDULUM, "rsl-rl itself"),
    ],
)
def test_the_trainer_goes_on_from_it_and_says_so_once(trainer, name: str, config, made_by: str):
    resume = ("--resume", str(FOLDER / f"{name}.pt"))
    answers = told(name)

    at_its_end = trainer.run({**config, "max_iterations": 2}, *resume)
    further = trainer.run({**config, "max_iterations": 3}, *resume)

    assert at_its_end.code == 0, at_its_end.stderr
    policy = torch.jit.load(at_its_end.output / "policy/policy.pt")
    torch.testing.assert_close(
        policy(torch.tensor(answers["observations"]["policy"])), torch.tensor(answers["mean"]), **CLOSE
    )
    saved = torch.load(at_its_end.output / "checkpoints/model_2.pt", weights_only=True)
    assert saved["optimizer_state_dict"]["param_groups"][0]["lr"] == answers["learning_rate"]
    [warning] = at_its_end.events("warning")
    assert warning["message"].startswith(f"{name}.pt was made by {made_by}: ")
    assert "random states start anew" in warning["message"]
    assert further.code == 0, further.stderr
    assert [event["iteration"] for event in further.events("iteration")] == [3]


def test_a_normaliser_that_the_config_does_not_have_is_told(trainer):
    config = {**CARTPOLE, "max_iterations": 3}

    refused = trainer.run(config, "--resume", str(FOLDER / "3.3.0_normalised.pt"))

    assert refused.code == 2
    assert (
        "checkpoint has an observation normaliser, config has none" in refused.events("failed")[0]["message"]
    )
