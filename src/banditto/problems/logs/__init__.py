"""Logs of rewards: which arm was pulled, what it paid."""

from __future__ import annotations

from banditto.problems.logs.log import RewardLog

__all__ = ["RewardLog"]
