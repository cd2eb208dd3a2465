"""A log that was exported as JSON, read event by event and verified on the way: no more than one event is in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from banditto.core.digest import canonical_json
from banditto.core.errors import BandittoError, InvalidArgument, LogError, masked
from banditto.engine.blocks import Progress
from banditto.engine.observations import Flow, Observations
from banditto.live.event_log import Event, FoldedLog, folded
from banditto.live.fold import Ticket
from banditto.live.metrics import MetricSum
from banditto.live.observing import NO_SUMS, ArmSums, observations_of
from banditto.live.registration import Registration, RewardRange

_CHUNK = 1 << 20
_EVENTS = '\n  "events": ['  # as `export` writes it; inside a name the line feed and the quotes would be escaped
_ALLOWED = "a log that `banditto export --format json` wrote"
_SHAPES = (ValueError, TypeError, LookupError, AttributeError)  # what reading another document raises


def read_exported(path: Path, progress: Progress | None = None) -> Observations:
    """Read and verify a log that was exported; what was seen comes back. `LogError` if it does not verify."""
    try:
        with path.open(encoding="utf-8") as file:
            size = path.stat().st_size
            document = ExportedEvents(file, lambda read: None if progress is None else progress(min(read, size), size))
            return _observed(document)
    except BandittoError:
        raise
    except OSError as error:
        given = masked(str(error.strerror or error))
        raise InvalidArgument("source", str(path), f"{_ALLOWED}, or URL#NAME ({given})") from None
    except (*_SHAPES, RecursionError):
        raise InvalidArgument("source", str(path), _ALLOWED) from None


class ExportedEvents:
    """The head of an exported log, and its events one by one."""

    def __init__(self, file: IO[str], progress: Any) -> None:
        self._file, self._progress = file, progress
        self._text, self._read = "", 0
        while _EVENTS not in self._text:
            if not self._more():
                raise ValueError("no events")
        head, _, self._text = self._text.partition(_EVENTS)
        content = json.loads(head.rstrip().rstrip(",") + "}")
        self.registration = Registration.from_json(canonical_json(content["registration"]))
        self.row: dict[str, Any] = {key: content[key] for key in ("name", "digest", "head", "created")}
        self.row |= {"registration": canonical_json(content["registration"]), "events": 0}

    def _more(self) -> bool:
        piece = self._file.read(max(_CHUNK, len(self._text)))  # an event that is larger is not begun again and again
        self._text += piece
        self._read += len(piece)
        self._progress(self._read)
        return bool(piece)

    def __iter__(self) -> Iterator[Event]:
        decoder = json.JSONDecoder()
        place = 0
        while True:
            while place < len(self._text) and self._text[place] in " \n\r\t,":
                place += 1
            if place < len(self._text) and self._text[place] == "]":
                return
            try:
                content, place = decoder.raw_decode(self._text, place)
            except json.JSONDecodeError:
                self._text, place = self._text[place:], 0
                if not self._more():
                    raise LogError("the file ends in the middle of an event", self.row["events"] + 1) from None
                continue
            self.row["events"] += 1
            body = canonical_json(content["content"])
            yield Event(content["number"], content["kind"], content["time"], body, content["hash"])


class _Adding:
    """Adds up what an analysis needs, event by event."""

    def __init__(self, registration: Registration) -> None:
        self._ends: RewardRange = registration.rewards
        arms = len(registration.arm_names)
        self.squares: dict[tuple[int, int], ArmSums] = {}
        self.metrics: dict[tuple[str, int, int], MetricSum] = {}
        self.flow = np.zeros((3, arms), dtype=np.int64)  # slots handed out first, all tickets, lost

    def add(self, event: Event, fold: FoldedLog) -> None:
        content = event.content
        if event.kind == "ask":
            for _, attempt, arm in content["slots"]:
                self.flow[0, arm] += attempt == 0
                self.flow[1, arm] += 1
        elif event.kind == "tell":
            for batch, position, attempt, reward in content["rewards"]:
                self._reward(batch, fold.arm_of(Ticket(batch, position, attempt)), reward, 1)
            for name, lines in content.get("metrics", {}).items():
                for batch, position, attempt, value in lines:
                    self._metric(name, batch, fold.arm_of(Ticket(batch, position, attempt)), value)
        elif event.kind == "missing":
            self.flow[2, fold.arm_of(Ticket(*content["ticket"]))] += 1
        elif event.kind == "correct":
            ticket = Ticket(*content["ticket"])
            self._reward(ticket.batch, fold.arm_of(ticket), content["before"], -1)
            self._reward(ticket.batch, fold.arm_of(ticket), content["after"], 1)

    def _metric(self, name: str, batch: int, arm: int, value: float) -> None:
        before = self.metrics.get((name, batch, arm))
        one = MetricSum(
            name=name, batch=batch, arm=arm, count=1, total=value, squares=value**2, smallest=value, largest=value
        )
        self.metrics[name, batch, arm] = one if before is None else before.plus(one)

    def _reward(self, batch: int, arm: int, reward: float, sign: int) -> None:
        self.squares[batch, arm] = self.squares.get((batch, arm), NO_SUMS).plus(reward, self._ends, sign)


def _observed(document: ExportedEvents) -> Observations:
    registration = document.registration
    adding = _Adding(registration)
    decisions: list[dict[str, Any]] = []
    fold: FoldedLog | None = None
    for event, fold in folded(iter(document), document.row):
        adding.add(event, fold)
        if event.kind == "decide":
            decisions.append(event.content)
    assert fold is not None  # an empty log is an error
    complete = {content["batch"] for content in decisions}
    told = {batch for batch, _ in adding.squares}
    flow = None
    if adding.flow[1].any():
        arms = range(len(registration.arm_names))
        due = [sum(content["counts"][arm] for content in decisions if content["batch"] in told) for arm in arms]
        # slots of the batch that is being played are no part of the plan yet
        running = fold.standing.stage
        first = adding.flow[0].copy()
        if running.batch not in complete and not running.finished:
            for position in range(fold.standing.issued):
                first[running.order.arm(position)] -= 1
        handed, lost = adding.flow[1].tolist(), adding.flow[2].tolist()
        flow = Flow(tuple(due), tuple(first.tolist()), tuple(handed), tuple(lost))
    return observations_of(registration, decisions, fold.standing, adding.squares, flow, adding.metrics.values())
