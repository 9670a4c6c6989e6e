"""A repository of the user's own, from the SDK to trained policies."""

import pytest
from repositories import Repository

from canard import Client
from canard.errors import RunFailedError

pytestmark = pytest.mark.e2e


def submit(client: Client, repository: Repository, **said):
    return client.submit_training_run(
        name="hover", task_name="Hover-v0", code_url=repository.url, num_envs=4, max_iterations=2, **said
    )


@pytest.mark.timeout(240)
def test_the_default_branch_trains_two_iterations(client, repository):
    commit = repository.commit()

    run = submit(client, repository)
    run.wait_for_completion(timeout_s=200)

    [task] = client.get_run_tasks(run.slug)
    assert task.status == "completed"
    assert task.code_commit == commit
    assert client.get_run(run.slug).config.training_config.gpu_count == 2
    metrics = run.get_metrics().training
    assert [point["iteration"] for point in metrics.reward_history] == [1, 2]


@pytest.mark.timeout(300)
def test_a_tag_a_branch_and_a_short_commit_train_the_code_they_name(client, repository):
    named = repository.commit()
    repository.git("tag", "0012345")
    repository.git("branch", "stable")
    repository.commit({"hover_env/__init__.py": "raise RuntimeError('this commit was not asked for')\n"})

    for ref in ("0012345", "stable", named[:7]):
        run = submit(client, repository, code_ref=ref)
        run.wait_for_completion(timeout_s=90)

        [task] = client.get_run_tasks(run.slug)
        assert (task.status, task.code_commit) == ("completed", named), ref


@pytest.mark.timeout(240)
def test_an_import_that_fails_shows_the_users_own_line_and_is_not_repeated(client, repository):
    repository.commit({"hover_env/__init__.py": "import no_such_simulator\n"})

    run = submit(client, repository)
    with pytest.raises(RunFailedError, match="no_such_simulator"):
        run.wait_for_completion(timeout_s=120)

    [task] = client.get_run_tasks(run.slug)
    assert (task.status, task.attempt) == ("failed", 1)
    first_line = task.error_message.splitlines()[0]
    assert "importing hover_env failed" in first_line
    assert "no_such_simulator" in first_line
