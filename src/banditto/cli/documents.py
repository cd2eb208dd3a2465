"""The types of what every verb prints with `--json`; `tools/schemas.py` writes `schemas/` from them.

A type is a promise to those who read documents. A new key makes a new type with the next `schema_version`, and the old
type stays in `DOCUMENTS` before it, from `earlier_documents.py` or `earlier_live_documents.py`, so that documents which
were kept are still read.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from banditto.cli import earlier_documents as earlier
from banditto.cli import earlier_live_documents as earlier_live
from banditto.core.json_types import Digest, Keywords, Natural, Positive
from banditto.core.provenance import Origin, Provenance, Warned
from banditto.geometry.design.design_result import DesignContent
from banditto.live.answers import AnswerContent, PendingContent, StatusContent
from banditto.live.export import ReceiptContent
from banditto.live.replicate import ReplicationContent
from banditto.live.selection import SelectionContent
from banditto.live.verify import VerificationContent
from banditto.measure.analysis.analysis import AnalysisContent
from banditto.measure.attack.attacking import AttackContent
from banditto.measure.calibrate import CalibrationContent
from banditto.measure.certificate import CertificateContent, CoinDecides
from banditto.measure.comparison import ComparisonContent
from banditto.measure.plan.plan_content import PlanContent
from banditto.measure.replay import ReplayedContent
from banditto.paper.running import ReproductionContent
from banditto.policies.policy import Level
from banditto.report.self_test import DiagnosisContent
from banditto.service.tokens import TokenContent


class CertificateDocument(CertificateContent, Warned, Provenance):
    """What `banditto certify --json` prints."""


class ComparisonDocument(ComparisonContent, Warned, Provenance):
    """What `banditto compare --json` prints."""

    title: str | None


class AttackDocument(AttackContent, Warned, Provenance):
    """What `banditto attack --json` prints."""


class CalibrationDocument(CalibrationContent, Warned, Provenance):
    """What `banditto calibrate --json` prints."""


class PlanDocument(PlanContent, Warned, Provenance):
    """What `banditto plan --json` prints."""


class ReproductionDocument(ReproductionContent, Provenance):
    """What `banditto reproduce --json` prints."""


class SelectionDocument(SelectionContent, Provenance):
    """What `banditto select --json` prints."""


class AnalysisDocument(AnalysisContent, Provenance):
    """What `banditto analyse --json` prints."""


class DoctorDocument(DiagnosisContent, Provenance):
    """What `banditto doctor --json` prints."""


class PulledContent(TypedDict):
    """How often to pull each action of a design's core set, if that was asked for."""

    pulls: NotRequired[Annotated[list[Positive], Keywords(minItems=1)]]
    plan_digest: NotRequired[Digest]


class DesignDocument(DesignContent, PulledContent, Origin):
    """What `banditto design --json` prints."""

    schema_version: Literal[1]
    versions: dict[str, Any]


class ListedPolicy(TypedDict):
    """A policy that can be named, and the options that it takes."""

    name: str
    kind: Literal["replicable", "baseline"]
    constants: list[str]
    level: Annotated[Level | None, Keywords(description="what two executions have in common; null for a baseline")]
    needs: Annotated[list[str], Keywords(description="options without which it cannot be had, such as gap")]
    takes: Annotated[list[str], Keywords(description="options that it can do without")]
    source: str
    summary: str


class PoliciesDocument(Origin):
    """What `banditto policies --json` prints."""

    schema_version: Literal[2]
    policies: list[ListedPolicy]
    versions: dict[str, Any]


class ReplayDocument(Warned, Provenance):
    """What `banditto replay --json` prints."""

    schema_version: Literal[2]
    labs: Annotated[list[ReplayedContent], Keywords(minItems=1, maxItems=2)]
    compared: Annotated[int | None, Keywords(description="pulls that both labs decided")]
    parted: Annotated[int | None, Keywords(description="the first of them that differs, from 1")]
    share_of_random_play: Annotated[
        float | None,
        Keywords(
            minimum=0,
            description="expected regret, divided by that of random play, if the arms pay what the log's averages say; "
            "rehearsed, and null for a baseline or equal averages",
        ),
    ]
    coin_decides: CoinDecides


# -- live experiments -------------------------------------------------------------------------------------------------


class RegisteredContent(TypedDict):
    """An experiment that was registered."""

    name: str
    digest: Digest
    head: Digest
    arm_names: list[str]
    decided_from: Annotated[
        float | None,
        Keywords(
            exclusiveMinimum=0,
            description="by how much the best arm must lead for rewards to decide, about; null: no lead is enough",
        ),
    ]
    coin_decides: CoinDecides
    warnings: list[str]


class TellingContent(TypedDict):
    """How many rewards were told with which answer."""

    recorded: Natural
    repeated: Natural
    excluded: Natural


class ToldContent(TypedDict):
    """The answers to `tell`."""

    told: TellingContent


class ChangedContent(TypedDict):
    """The answer to `missing` or `correct`."""

    ticket: str
    answer: Literal["recorded", "repeated"]


class StoppedContent(TypedDict):
    """The answer to `stop`."""

    answer: Literal["recorded", "repeated"]


class LostContent(TypedDict):
    """How many tickets were given up, and how many had been before."""

    recorded: Natural
    repeated: Natural


class WaitingContent(TypedDict):
    """Tickets that wait for a reward, the oldest first."""

    tickets: list[PendingContent]
    total: Annotated[Natural, Keywords(description="how many there are; more than are listed, if the list was cut")]


class ExportContent(TypedDict):
    """A file that was written, and what to keep of the log."""

    file: str
    receipt: ReceiptContent


class ServingContent(TypedDict):
    """A service that listens."""

    address: str
    store: str


class OneTokenContent(TypedDict):
    """A token that was revoked."""

    token: TokenContent


class NewTokenContent(OneTokenContent):
    """A token that was made, with its whole text, which is shown once."""

    text: str


class TokenListContent(TypedDict):
    """All tokens of a store."""

    tokens: list[TokenContent]


LiveContent = (
    RegisteredContent
    | AnswerContent
    | ToldContent
    | ChangedContent
    | LostContent
    | StoppedContent
    | StatusContent
    | WaitingContent
    | VerificationContent
    | ReplicationContent
    | ExportContent
    | ServingContent
    | OneTokenContent
    | NewTokenContent
    | TokenListContent
)


class LiveOrigin(Provenance):
    """What those live verbs print whose documents have no later version."""

    schema_version: Literal[1]


class InitDocument(RegisteredContent, Provenance):
    """What `banditto init --json` prints."""

    schema_version: Literal[2]


class TicketsDocument(AnswerContent, Provenance):
    """What `banditto ask --json` prints."""

    schema_version: Literal[2]


class ToldDocument(ToldContent, LiveOrigin):
    """What `banditto tell --json` prints."""


class ChangedDocument(ChangedContent, LiveOrigin):
    """What `banditto missing --json`, for one ticket, and `banditto correct --json` print."""


class LostDocument(LostContent, LiveOrigin):
    """What `banditto missing --json` prints for several tickets."""


class StoppedDocument(StoppedContent, LiveOrigin):
    """What `banditto stop --json` prints."""


class StatusDocument(StatusContent, Provenance):
    """What `banditto status --json` prints."""

    schema_version: Literal[3]


class PendingDocument(WaitingContent, Provenance):
    """What `banditto pending --json` prints."""

    schema_version: Literal[2]


class VerificationDocument(VerificationContent, Provenance):
    """What `banditto verify --json` prints."""

    schema_version: Literal[2]


class ReplicationDocument(ReplicationContent, Provenance):
    """What `banditto replicate --json` prints."""

    schema_version: Literal[2]


class ExportDocument(ExportContent, LiveOrigin):
    """What `banditto export --json` prints."""


class ServingDocument(ServingContent, LiveOrigin):
    """What `banditto serve --json` prints once it listens."""


class NewTokenDocument(NewTokenContent, LiveOrigin):
    """What `banditto token create --json` prints."""


class TokenListDocument(TokenListContent, LiveOrigin):
    """What `banditto token list --json` prints."""


class RevokedTokenDocument(OneTokenContent, LiveOrigin):
    """What `banditto token revoke --json` prints."""


# the file in `schemas/`, and the types that it reads: of every version, the oldest first
DOCUMENTS: dict[str, tuple[Any, ...]] = {
    "analysis": (AnalysisDocument,),
    "attack": (earlier.FirstAttackDocument, AttackDocument),
    "calibration": (earlier.FirstCalibrationDocument, CalibrationDocument),
    "certificate": (earlier.FirstCertificateDocument, earlier.SecondCertificateDocument, CertificateDocument),
    "changed": (ChangedDocument,),
    "comparison": (earlier.FirstComparisonDocument, earlier.SecondComparisonDocument, ComparisonDocument),
    "design": (DesignDocument,),
    "doctor": (DoctorDocument,),
    "export": (ExportDocument,),
    "init": (earlier_live.FirstInitDocument, InitDocument),
    "lost": (LostDocument,),
    "pending": (earlier_live.FirstPendingDocument, PendingDocument),
    "plan": (earlier.FirstPlanDocument, PlanDocument),
    "policies": (earlier.FirstPoliciesDocument, PoliciesDocument),
    "replay": (earlier.FirstReplayDocument, ReplayDocument),
    "new-token": (NewTokenDocument,),
    "replication": (earlier_live.FirstReplicationDocument, ReplicationDocument),
    "reproduction": (ReproductionDocument,),
    "revoked-token": (RevokedTokenDocument,),
    "selection": (SelectionDocument,),
    "serving": (ServingDocument,),
    "status": (earlier_live.FirstStatusDocument, earlier_live.SecondStatusDocument, StatusDocument),
    "stopped": (StoppedDocument,),
    "tickets": (earlier_live.FirstTicketsDocument, TicketsDocument),
    "token-list": (TokenListDocument,),
    "told": (ToldDocument,),
    "verification": (earlier_live.FirstVerificationDocument, VerificationDocument),
}
