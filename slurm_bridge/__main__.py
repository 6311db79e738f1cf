"""`python -m slurm_bridge` is the same as `slurm-bridge`."""

import sys

from slurm_bridge import cli

sys.exit(cli.main())
