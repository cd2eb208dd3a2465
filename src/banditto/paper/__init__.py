"""The paper's claims as experiments: one number each, with a rule that stands in the code and not in the data."""

from banditto.paper.running import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
