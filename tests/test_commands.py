"""The harness that runs commands in this process leaves nothing behind."""

from __future__ import annotations

import logging

from tests.commands import python

_SCRIPT = """
import logging
handler = logging.StreamHandler()
for name in (None, "banditto", "banditto.live"):
    logging.getLogger(name).addHandler(handler)
    logging.getLogger(name).setLevel(logging.DEBUG)
logging.getLogger("banditto.live").debug("seen")
"""


def test_a_script_that_sets_logging_up_leaves_none_of_it() -> None:
    loggers = [logging.getLogger(name) for name in (None, "banditto", "banditto.live")]
    before = [(logger.handlers[:], logger.level) for logger in loggers]
    assert "seen" in python(_SCRIPT).stderr
    assert [(logger.handlers, logger.level) for logger in loggers] == before
