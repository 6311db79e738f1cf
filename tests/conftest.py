"""What every suite may ask for: the local cluster, when one runs."""

from collections.abc import Mapping

import pytest

from localcluster import envfile


@pytest.fixture(scope="session")
def cluster() -> Mapping[str, str]:
    """The variables of the running local cluster; a case that asks for it fails where there is none."""
    try:
        return envfile.read()
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
