"""Programs that the golden tests compare with."""

import shutil
from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def require_command() -> Callable[[str], None]:
    """Skip the test if a program is not installed."""

    def check(name: str) -> None:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed; apt-get install {name} to compare with it.")

    return check
