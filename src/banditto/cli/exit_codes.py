"""What the program tells a shell: the exit codes of all verbs."""

from __future__ import annotations

EXIT_OK = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_CHECK = 3
EXIT_CONFLICT = 4
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
