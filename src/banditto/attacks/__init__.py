"""Adversaries: searching for the instance that breaks a policy."""

from banditto.attacks.attacking import Attack, attack

__all__ = ["Attack", "attack"]
