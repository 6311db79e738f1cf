"""What a detached server is before it is the server: it records itself, then becomes the command.

`python -m localcluster.launch PIDFILE FINGERPRINT COMMAND…`
"""

import os
import pathlib
import sys

from localcluster import process


def main(arguments: list[str]) -> None:
    """Write the record, then exec: neither the pid nor the start time changes by that."""
    file, fingerprint, *command = arguments
    process.Record.of_self(fingerprint).write(pathlib.Path(file))
    os.chdir("/")  # so that no server holds the folder it was started from
    os.execve(command[0], command, process.server_environment(os.environ))  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main(sys.argv[1:])
