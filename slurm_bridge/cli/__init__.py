"""The command line: `slurm-bridge COMMAND`, and the clients of the HTTP pages that a running daemon serves.

Belongs here: arguments, text for people, exit statuses, and how a command asks a daemon over HTTP. Does not belong
here: what the commands do (`app` and the packages below it), and anything that the daemon itself needs.

`command_line` joins the commands; each module beside it adds one command or a few that belong together.
"""

from slurm_bridge.cli.command_line import complete_plugin, main, plugin

__all__ = ["complete_plugin", "main", "plugin"]
