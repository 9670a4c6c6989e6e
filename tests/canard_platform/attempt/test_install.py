"""Users' projects in their several layouts, really installed beside a trainer's environment."""

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import PYPROJECT

from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.install import Installer, Prepared
from canard_platform.attempt.python_environment import clean_environ, layer_over, look_at
from canard_platform.attempt.stop import StopOrder

SETUP = "from setuptools import find_packages, setup\nsetup(name={name!r}, packages=find_packages())\n"


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def prepare(tmp_path: Path, warnings: list[str]) -> Callable[..., Prepared]:
    """Writes a work tree and prepares it."""

    def prepare(
        files: dict[str, str], *, python: str = sys.executable, env: dict[str, str] | None = None
    ) -> Prepared:
        tree = tmp_path / "code"
        for name, content in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        installer = Installer(
            trainer_python=python,
            work_dir=tmp_path,
            stop=StopOrder(),
            env={"PIP_NO_INDEX": "1", **(env or {})},
            warn=warnings.append,
        )
        return installer.prepare(tree)

    return prepare


def says(prepared: Prepared, statement: str) -> str:
    """What Python prints where the trainer would run."""
    done = subprocess.run(
        [prepared.python, "-P", "-c", statement],
        cwd=prepared.cwd,
        env=clean_environ({}, python_path=prepared.python_path),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_project_is_importable_beside_all_that_the_trainer_has(prepare, tmp_path):
    site_packages = Path(sysconfig.get_paths()["purelib"])
    before = sorted(site_packages.iterdir())

    prepared = prepare(
        {"pyproject.toml": PYPROJECT.format(name="legs", package="legs"), "legs/__init__.py": "A = 1"}
    )

    assert prepared.modules == ["legs"]
    assert prepared.cwd == tmp_path / "code"
    said = says(prepared, "import legs, torch, trainer, canard.models; print(legs.A, legs.__file__)")
    assert said == f"1 {tmp_path / 'code' / 'legs' / '__init__.py'}"
    assert sorted(site_packages.iterdir()) == before


def test_the_projects_under_source_are_all_installed(prepare):
    prepared = prepare(
        {
            "README.md": "Isaac Lab's template",
            "source/arm/setup.py": SETUP.format(name="arm"),
            "source/arm/arm/__init__.py": "A = 1",
            "source/leg/setup.py": SETUP.format(name="leg"),
            "source/leg/leg/__init__.py": "L = 2",
            "scripts/train.py": "raise SystemExit('must not be imported')",
        }
    )

    assert prepared.modules == ["arm", "leg"]
    assert says(prepared, "import arm, leg; print(arm.A + leg.L)") == "3"


def test_the_src_layout_and_a_subdirectory_with_a_space(prepare, tmp_path):
    pyproject = PYPROJECT.partition("[tool.setuptools]")[0].format(name="legs")
    prepared = prepare(
        {
            "canard.yaml": "subdirectory: my robots/\n",
            "my robots/pyproject.toml": pyproject,
            "my robots/src/legs/__init__.py": "A = 1",
            "my robots/tests/__init__.py": "",
        }
    )

    assert prepared.modules == ["legs"]
    assert prepared.cwd == tmp_path / "code" / "my robots"
    assert says(prepared, "import legs, os; print(legs.A, os.getcwd())") == f"1 {prepared.cwd}"


def test_the_modules_that_canard_yaml_names_are_imported(prepare):
    prepared = prepare(
        {
            "canard.yaml": "modules: [legs.tasks]\n",
            "pyproject.toml": PYPROJECT.format(name="legs", package="legs"),
            "legs/__init__.py": "",
            "legs/tasks.py": "",
        }
    )

    assert prepared.modules == ["legs.tasks"]


def test_plain_modules_are_taken_as_they_lie_and_scripts_left_alone(prepare, warnings):
    prepared = prepare(
        {
            "pyproject.toml": "[tool.ruff]\nline-length = 110\n",
            "hover.py": "import gymnasium\ngymnasium.register('Hover-v0', entry_point=object)\n",
            "train.py": "raise SystemExit('a script, not to be imported')\n",
            "robots/__init__.py": "",
            "tests/__init__.py": "",
        }
    )

    assert prepared.modules == ["hover", "robots"]
    assert prepared.python == sys.executable
    assert says(prepared, "import hover, robots, trainer; print(trainer.__file__)").endswith("__init__.py")
    assert warnings == []


def test_a_repository_with_nothing_to_import_says_how_to_name_it(prepare, warnings):
    prepared = prepare({"train.py": "print('no environment here')\n", "requirements.txt": "numpy\n"})

    assert prepared.modules == []
    assert ["requirements.txt" in one or "canard.yaml (modules" in one for one in warnings] == [True, True]


def test_the_commit_that_was_asked_for_goes_before_a_copy_in_the_trainers_environment(prepare, tmp_path):
    old = tmp_path / "old"
    (old / "legs").mkdir(parents=True)
    (old / "legs" / "__init__.py").write_text("A = 'old'")
    environment = look_at(sys.executable, stop=StopOrder(), env=clean_environ({}))
    python = layer_over(environment, tmp_path / "trainer-environment", stop=StopOrder())
    [site_packages] = (tmp_path / "trainer-environment").glob("lib/python*/site-packages")
    (site_packages / "legs.pth").write_text(f"{old}\n")
    information = site_packages / "legs-0.0.1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: legs\nVersion: 0.0.1\n")

    prepared = prepare(
        {"pyproject.toml": PYPROJECT.format(name="legs", package="legs"), "legs/__init__.py": "A = 'new'"},
        python=python,
    )

    assert says(prepared, "import legs, torch; print(legs.A)") == "new"


@pytest.mark.parametrize("hidden", ["trainer", "canard"])
def test_a_repository_that_hides_our_own_packages_is_refused(prepare, hidden):
    with pytest.raises(AttemptFailure, match=f"top-level package named '{hidden}'") as refused:
        prepare({f"{hidden}/__init__.py": "", "legs/__init__.py": ""})

    assert not refused.value.retryable


def test_what_the_simulator_pins_is_not_replaced(prepare):
    pyproject = PYPROJECT.format(name="legs", package="legs").replace("[]", '["numpy<1"]')

    with pytest.raises(
        AttemptFailure, match=r"numpy<1, but the trainer's environment has numpy=="
    ) as refused:
        prepare({"pyproject.toml": pyproject, "legs/__init__.py": ""})

    assert not refused.value.retryable
    assert "numpy" in refused.value.detail


def test_a_setup_that_fails_is_shown_by_its_own_words(prepare):
    with pytest.raises(AttemptFailure, match="installing code: error:") as refused:
        prepare({"setup.py": "raise RuntimeError('no CUDA compiler here')\n"})

    assert not refused.value.retryable
    assert "no CUDA compiler here" in refused.value.detail


def test_a_package_index_that_does_not_answer_may_answer_later(prepare):
    pyproject = PYPROJECT.format(name="legs", package="legs").replace("[]", '["nowhere-to-be-found-xyz"]')

    with pytest.raises(AttemptFailure, match="the package index could not be reached") as failed:
        prepare(
            {"pyproject.toml": pyproject, "legs/__init__.py": ""},
            env={
                "PIP_NO_INDEX": "0",
                "PIP_INDEX_URL": "http://127.0.0.1:1/simple",
                "PIP_EXTRA_INDEX_URL": "http://127.0.0.1:1/simple",
                "PIP_RETRIES": "1",
            },
        )

    assert failed.value.retryable


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modules: legs\n", "canard.yaml: modules: Input should be a valid list"),
        ("modules: [legs-2]\n", "canard.yaml: modules.0: "),
        ("module: [legs]\n", "canard.yaml: module: unknown field 'module'; did you mean 'modules'?"),
        ("simulator: bullet\n", "canard.yaml: simulator: "),
        ("subdirectory: robots\n", "canard.yaml: subdirectory: the repository has no folder 'robots'"),
        ("subdirectory: ../x\n", "canard.yaml: subdirectory: '../x' leads out of the repository"),
        ("subdirectory: /etc\n", "canard.yaml: subdirectory: '/etc' leads out of the repository"),
        ("subdirectory: link\n", "canard.yaml: subdirectory: 'link' leads out of the repository"),
        ("modules: [\n", "canard.yaml: is no YAML (line 2: "),
        ("- legs\n", "canard.yaml: must be a mapping"),
    ],
)
def test_a_wrong_canard_yaml_is_refused_by_file_and_field(prepare, tmp_path, text, message):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "link").symlink_to(tmp_path)

    with pytest.raises(AttemptFailure) as refused:
        prepare({"canard.yaml": text, "legs/__init__.py": ""})

    assert refused.value.message.startswith(message)
    assert not refused.value.retryable
