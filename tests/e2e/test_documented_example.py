"""The example of the public documents, with api_url changed and a repository of the test's own."""

from pathlib import Path

import pytest
from repositories import Repository

from canard import Client

pytestmark = pytest.mark.e2e


@pytest.mark.timeout(240)
def test_the_documented_example_runs_as_written(platform, repository: Repository, tmp_path: Path, capsys):
    head = repository.commit()
    client = Client(api_url=platform.url)

    run = client.submit_training_run(
        name="hover-v1",
        task_name="Hover-v0",
        code_url=repository.url,
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
    assert [task.code_commit for task in client.get_run_tasks(run.slug)] == [head]
    client.close()
