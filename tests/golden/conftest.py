"""Programs that the golden tests compare with."""

import shutil
from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def require_command() -> Callable[..., None]:
    """Skip the test if a program is not installed."""

    def check(name: str, how: str = "") -> None:
        if shutil.which(name) is None:
            how = how or f"apt-get install {name}"
            pytest.skip(f"{name} is not installed; {how} to compare with it.")

    return check
