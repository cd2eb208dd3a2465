"""Adversaries: searching for the instance that breaks a policy."""

from banditto.measure.attack.attacking import Attack, attack

__all__ = ["Attack", "attack"]
