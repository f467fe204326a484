"""The distribution as people install it: the base alone, in an environment with nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q")
    built = run(*pip, "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("gpu_pruner-*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment") / "venv"
    assert run(sys.executable, "-m", "venv", folder).returncode == 0
    pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q")
    installed = run(*pip, "--no-index", wheel)
    assert installed.returncode == 0, installed.stderr
    return folder


def test_the_base_needs_nothing_else(environment: Path) -> None:
    assert run(environment / "bin" / "python", "-c", "import gpu_pruner_ext").returncode == 0


def test_the_command_says_what_to_install(environment: Path) -> None:
    ended = run(environment / "bin" / "gpu-pruner", "once")

    assert ended.returncode == 1
    assert "pip install 'gpu-pruner[controller]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_both_programs_and_the_licence_are_in_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "gpu_pruner",
        "gpu_pruner_ext",
    }
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "gpu_pruner/py.typed" in names
