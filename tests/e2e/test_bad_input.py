"""What is wrong with a request is said in one line, by the program that can know it first."""

import socket

import pytest

from canard import Client
from canard.errors import (
    AuthenticationError,
    ConnectionFailedError,
    InvalidRequestError,
    RunFailedError,
)

pytestmark = pytest.mark.e2e


def fails(client: Client, **said) -> list[str]:
    """First lines of the errors of the tasks of a run that is submitted and fails."""
    run = client.submit_training_run(name="bad", **{"num_envs": 4, "max_iterations": 1, **said})
    with pytest.raises(RunFailedError):
        run.wait_for_completion(timeout_s=120)
    return [task.error_message.splitlines()[0] for task in client.get_run_tasks(run.slug)]


@pytest.mark.timeout(240)
def test_an_unknown_task_names_those_that_are_near(client, repository):
    repository.commit()

    [line] = fails(client, task_name="Hoover-v0", code_url=repository.url)

    assert "task_name: no task 'Hoover-v0'" in line
    assert "Hover-v0" in line


@pytest.mark.timeout(240)
def test_a_repository_that_cannot_be_reached_is_named(client):
    [line] = fails(client, code_url="https://127.0.0.1:1/robots/hover")

    assert line.startswith("code_url: https://127.0.0.1:1/robots/hover cannot be reached: ")


def test_a_ref_that_is_not_there_is_refused_at_once(client, repository):
    repository.commit()

    with pytest.raises(InvalidRequestError, match=r"code_ref: .* has no 'v9' \(there is: main\)"):
        client.submit_training_run(name="bad-ref", code_url=repository.url, code_ref="v9")

    assert [run for run in client.list_runs() if run.name == "bad-ref"] == []


def test_a_checkpoint_that_is_not_there_is_refused_at_once(client, repository):
    repository.commit()

    with pytest.raises(InvalidRequestError, match=r"checkpoint_url: /nowhere/model_5\.pt is no file"):
        client.submit_training_run(name="bad", code_url=repository.url, checkpoint_url="/nowhere/model_5.pt")
    with pytest.raises(InvalidRequestError, match="checkpoint_url: "):
        client.submit_training_run(
            name="bad",
            code_url=repository.url,
            checkpoint_url="s3://canard/runs/run_00000000/checkpoints/model_5.pt",
        )


def test_a_wrong_key_is_refused_and_its_source_named(platform):
    with (
        Client(api_url=platform.url, api_key="canard_wrong") as client,
        pytest.raises(AuthenticationError, match=r"the API key is not valid.*api_key"),
    ):
        client.list_runs()


def test_a_service_that_is_down_is_said_with_how_to_start_it(platform):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        Client(api_url=f"http://127.0.0.1:{port}", api_key="canard_any") as client,
        pytest.raises(ConnectionFailedError, match=r"connection was refused.*canard up"),
    ):
        client.list_runs()
