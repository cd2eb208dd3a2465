"""A log that was exported as JSON, read event by event and verified on the way: no more than one event is in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from banditto.core.digest import canonical_json
from banditto.core.errors import BandittoError, InvalidArgument, LogError, masked
from banditto.engine.blocks import Progress
from banditto.engine.observations import Observations
from banditto.live.event_log import Event, folded
from banditto.live.observing import LogSums
from banditto.live.registration import Registration

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


def _observed(document: ExportedEvents) -> Observations:
    sums = LogSums()
    for event, fold in folded(iter(document), document.row):
        sums.add(event, fold)
    found = sums.observations()
    assert found is not None  # an empty log is an error
    return found
