"""What every suite has: hypothesis without a clock, and the local cluster, when one runs."""

from collections.abc import Mapping

import hypothesis
import pytest

from localcluster import envfile

# How long an example takes says more of what else the machine does than of the code.
hypothesis.settings.register_profile("slurm-bridge", deadline=None)
hypothesis.settings.load_profile("slurm-bridge")


@pytest.fixture(scope="session")
def cluster() -> Mapping[str, str]:
    """The variables of the running local cluster; a case that asks for it fails where there is none."""
    try:
        return envfile.read()
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
