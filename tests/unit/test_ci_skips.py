from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SKIPS = {
    "in_a_test": "import pytest\ndef test_it():\n    pytest.skip('install the thing')\n",
    "by_a_mark": "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_it(): pass\n",
    "of_a_module": "import pytest\npytest.importorskip('no_such_module')\n",
}
PASSES = "def test_it(): pass\n"
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail\ndef test_it(): assert False\n"


def run_pytest(folder: Path, text: str, *flags: str, ci: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "test_one.py").write_text(text)
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
            *(*flags, "--rootdir", folder, folder),
        ],
        env=os.environ | {"CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("text", SKIPS.values(), ids=SKIPS.keys())
def test_a_skip_fails_the_run_in_ci(tmp_path: Path, text: str) -> None:
    ended = run_pytest(tmp_path, text, ci="true")

    assert ended.returncode != 0
    assert "nothing may be skipped where CI=true" in ended.stdout


def test_a_skip_is_a_skip_elsewhere(tmp_path: Path) -> None:
    ended = run_pytest(tmp_path, SKIPS["in_a_test"], ci="")

    assert ended.returncode == 0
    assert "1 skipped" in ended.stdout


def test_what_is_missing_is_said_in_one_line(tmp_path: Path) -> None:
    two = SKIPS["in_a_test"] + SKIPS["in_a_test"].replace("import pytest\n", "").replace(
        "test_it", "test_that"
    )

    ended = run_pytest(tmp_path, two, "-ra", ci="")

    assert ended.stdout.count("install the thing") == 1


@pytest.mark.parametrize("text", [PASSES, EXPECTED_FAILURE], ids=["passes", "expected_failure"])
def test_what_is_not_a_skip_passes_in_ci(tmp_path: Path, text: str) -> None:
    assert run_pytest(tmp_path, text, ci="true").returncode == 0
