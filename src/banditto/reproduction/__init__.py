"""The paper's claims as experiments: one number each, with a rule that was fixed before it was measured."""

from banditto.reproduction.running import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
