"""How a service is set up: its store, its limits, who may call it from a browser."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from typing import Any

from banditto.core.errors import InvalidArgument
from banditto.core.input_files import MIB

VARIABLE = "BANDITTO_SERVICE"  # how `serve` hands its settings to the worker processes


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """Says where experiments are, and what the service lets callers do.

    Args:
        store: the URL of the store.
        largest_body: bytes that a request may have.
        rate: requests a second that a token may make in one worker process; as many more may come at once.
        origins: web pages that browsers may call the service from, such as https://example.org; none by default.
        patience: seconds in which a request must have arrived whole, and in which a reader must take each part of an
            answer.
        job_seconds: seconds that a plan may take.
        token_memory: seconds for which a worker remembers a token: a revoked one is refused after this time at the
            latest.
    """

    store: str
    largest_body: int = 4 * MIB
    rate: float = 1000.0
    origins: tuple[str, ...] = ()
    patience: float = 20.0
    job_seconds: float = 60.0
    token_memory: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "origins", tuple(self.origins))
        if not 1024 <= self.largest_body <= 1024 * MIB:
            raise InvalidArgument("largest_body", self.largest_body, "from 1 kB to 1 GB")
        if not 1 <= self.rate <= 1e6:
            raise InvalidArgument("rate", self.rate, "from 1 to 1,000,000 requests a second")
        for origin in self.origins:
            if not origin.startswith(("https://", "http://")) or origin.endswith("/") or "*" in origin:
                raise InvalidArgument("allow_origin", origin, "such as https://example.org, without a path or *")

    @classmethod
    def of_environment(cls) -> ServiceSettings:
        """Read what `serve` left for its worker processes."""
        content: dict[str, Any] = json.loads(os.environ[VARIABLE])
        return cls(**{field.name: content[field.name] for field in fields(cls)})

    def to_json(self) -> str:
        """Write the settings for worker processes."""
        return json.dumps(asdict(self))
