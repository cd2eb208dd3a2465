"""What callers send: the bodies of requests. Pydantic checks their shape, the library what they say, in its own words.

Keywords such as `minimum` stand in the OpenAPI document and are not checked here: the library checks them, and its
error names what is allowed.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from banditto.core.errors import InvalidArgument
from banditto.core.json_types import Keywords
from banditto.core.protocol import Protocol
from banditto.live.ask_tell import MOST_LOST
from banditto.live.checked_words import LONGEST_TEXT, LONGEST_UNIT
from banditto.live.experiment import MOST_TICKETS
from banditto.live.registration import Registration, registered
from banditto.policies.policy import Level
from banditto.service.calls import MOST_REWARDS

MOST_EVENTS = 10_000
MOST_PENDING = 10_000
_A_REASON = Keywords(minLength=1, maxLength=LONGEST_TEXT, description="why, in words that stand in the log")
_BY = Keywords(maxLength=LONGEST_UNIT, description="who says so, which stands in the log, too")
Number = int | float  # integers stay what they are: those above 2^53 are refused, not rounded


class Body(BaseModel):
    """A body: no other keys, and no text where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RegisterBody(Body):
    """What is fixed before the first user."""

    protocol: Annotated[dict[str, Any], Keywords(description="as `POST /v1/plan` or `Protocol.to_dict` gives it")]
    arm_names: Annotated[
        list[str] | None, Keywords(description="a name for each arm, in order; null: their numbers from 0")
    ] = None
    rewards: Annotated[
        list[Number] | None, Keywords(description="the ends of what a reward may be, such as [0, 1]; [] for no ends")
    ] = None
    fallback: Annotated[
        str | int | None, Keywords(description="the arm for units that come when there is no ticket")
    ] = None
    deadline: Annotated[
        Number | None, Keywords(description="whole seconds after which a ticket without a reward is given up")
    ] = None

    def registration(self) -> Registration:
        """Make the registration, as `banditto init` does."""
        ends: tuple[float, float] | None = None
        if self.rewards is not None:
            if len(self.rewards) not in (0, 2):
                raise InvalidArgument("rewards", self.rewards, "two numbers such as [0, 1], or [] for no ends")
            ends = (self.rewards[0], self.rewards[1]) if self.rewards else (-float("inf"), float("inf"))
        protocol = Protocol.from_dict(self.protocol)
        return registered(protocol, self.arm_names, ends, self.fallback, self.deadline)


class AskBody(Body):
    """How many tickets, or for whom."""

    n: Annotated[int, Keywords(minimum=1, maximum=MOST_TICKETS, description="at most so many tickets")] = 1
    request_id: Annotated[
        str | None, Keywords(description="the same as the header Idempotency-Key, for ids that no header can hold")
    ] = None
    unit: Annotated[
        str | None,
        Keywords(description="who gets the arm: one unit has one ticket, the same whenever it comes back"),
    ] = None


class RewardBody(Body):
    """The reward of one ticket."""

    ticket: str
    reward: Number
    metrics: Annotated[dict[str, Number] | None, Keywords(description="more numbers to keep; they never decide")] = None
    arm: Annotated[str | int | None, Keywords(description="that you believe the ticket has")] = None


class TellBody(Body):
    """Rewards, which are all told or none."""

    rewards: Annotated[list[RewardBody], Keywords(maxItems=MOST_REWARDS)]


class TotalBody(Body):
    """An arm's number of rewards, and their sum."""

    count: Annotated[int, Keywords(minimum=0)]
    total: Number


class TotalsBody(Body):
    """A whole batch, for teams that add up elsewhere."""

    batch: Annotated[int, Keywords(minimum=1)]
    totals: Annotated[dict[str, TotalBody], Keywords(description="by the names of the arms that were planned")]


class MissingBody(Body):
    """Tickets whose rewards will not come."""

    tickets: Annotated[list[str], Keywords(maxItems=MOST_LOST)]
    reason: Annotated[str, _A_REASON]
    by: Annotated[str, _BY] = ""


class MissingOlderBody(Body):
    """How long a ticket must have waited to be given up."""

    older_than: Annotated[Number, Keywords(minimum=0, description="seconds")]
    reason: Annotated[str, _A_REASON]
    by: Annotated[str, _BY] = ""


class CorrectBody(Body):
    """The right reward of a ticket."""

    ticket: str
    reward: Number
    reason: Annotated[str, _A_REASON]


class StopBody(Body):
    """Why an experiment ends before its horizon."""

    reason: Annotated[str, _A_REASON]


class AnalyseBody(Body):
    """What to say of an experiment's rewards and metrics."""

    confidence: Annotated[Number, Keywords(exclusiveMinimum=0.5, exclusiveMaximum=1)] = 0.95
    binary: Annotated[bool | None, Keywords(description="whether rewards are 0 or 1; null: as they look")] = None
    metric_ranges: Annotated[
        dict[str, list[Number]] | None, Keywords(description="the smallest and the largest value of a metric")
    ] = None
    guardrails: Annotated[
        list[str] | None, Keywords(description="bounds that metrics should keep, such as latency<=3")
    ] = None


class VerifyBody(Body):
    """A head that the log must contain."""

    expect: Annotated[str | None, Keywords(description="the head of a receipt or an export")] = None


class ReplicateBody(Body):
    """Two experiments of this store."""

    first: str
    second: str


class PlanBody(Body):
    """A question to the planner, with one of gap, rho and horizon left out."""

    arms: Annotated[int | None, Keywords(minimum=2)] = None
    gap: Number | None = None
    rho: Number | None = None
    horizon: int | None = None
    regret: Number | None = None
    policy: str | None = None
    environment: str = "bernoulli"
    power: Number | None = None
    by: Number | None = None
    rate_at_most: Number | None = None
    baseline: Number | None = None
    control: int | None = None
    same: Level | None = None
    seed: Annotated[int | None, Keywords(minimum=0, description="of the coins; null: a random one")] = None
