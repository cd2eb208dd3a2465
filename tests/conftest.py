"""The same examples on every machine, and no limit to how long one may take on a busy one."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
