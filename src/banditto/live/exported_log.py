"""A log that was exported as JSON, read event by event and verified on the way: no more than one event is in memory."""

from __future__ import annotations

import io
import json
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from banditto.core.digest import canonical_json
from banditto.core.errors import BandittoError, InvalidArgument, LogError, masked
from banditto.core.input_files import Unreadable, opened
from banditto.engine.observations import Observations
from banditto.engine.progress import Progress
from banditto.live.event_log import Event
from banditto.live.folded_log import FoldedLog, folded
from banditto.live.observing import observed
from banditto.live.registration import Registration

_CHUNK = 1 << 20
_LONGEST_PIECE = 1 << 28  # of what stands before the events, and of an event: those of a million tickets have a tenth
_LARGEST_FILE = 1 << 40
_EVENTS = '\n  "events": ['  # as `export` writes it; inside a name the line feed and the quotes would be escaped
_ALLOWED = "a log that `banditto export --format json` wrote"
# an event on a line of its own, as `export` writes it
_LINE = re.compile(
    r'\{"number": ([0-9]{1,18}), "kind": "([a-z]+)", "time": "([0-9T:.+-]+)", '
    r'"content": (\{.*\}), "hash": "([0-9a-f]+)"\},?'
)
_SHAPES = (ValueError, TypeError, LookupError, AttributeError)  # what reading another document raises


def read_exported(path: Path, progress: Progress | None = None) -> Observations:
    """Read and verify a log that was exported; what was seen comes back. `LogError` if it does not verify."""
    return observed(fold_exported(path, progress, "source"))


def fold_exported(path: Path, progress: Progress | None, argument: str) -> FoldedLog:
    """Fold a log that was exported, and verify it on the way; an error names the argument that the file was given as.

    `LogError` if it does not verify.
    """
    with exported_events(path, progress, argument) as document:
        (_, fold) = deque(folded(iter(document), document.row), maxlen=1).pop()  # an empty log is an error
        return fold


@contextmanager
def exported_events(path: Path, progress: Progress | None, argument: str) -> Iterator[ExportedEvents]:
    """Open a log that was exported; an error names the argument that the file was given as."""
    try:
        with opened(path, _LARGEST_FILE) as raw, io.TextIOWrapper(raw, encoding="utf-8") as file:
            size = path.stat().st_size
            yield ExportedEvents(file, lambda read: None if progress is None else progress(min(read, size), size))
    except BandittoError:
        raise
    except (OSError, Unreadable) as error:
        given = masked(str(getattr(error, "strerror", None) or error))
        raise InvalidArgument(argument, str(path), f"{_ALLOWED}, or URL#NAME ({given})") from None
    except (*_SHAPES, RecursionError):
        raise InvalidArgument(argument, str(path), _ALLOWED) from None


class ExportedEvents:
    """Reads an exported log: its head at once, then its events one by one."""

    def __init__(self, file: IO[str], progress: Any) -> None:
        self._file, self._progress = file, progress
        self._text, self._read = "", 0
        while _EVENTS not in self._text:
            if len(self._text) > _LONGEST_PIECE or not self._more():
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
        """Yield the events; today's files have one on each line, older files spread them over many lines."""
        decoder = json.JSONDecoder()
        place = 0
        while True:
            while place < len(self._text) and self._text[place] in " \n\r\t,":
                place += 1
            end = self._text.find("\n", place)
            line = _LINE.fullmatch(self._text, place, end) if end >= 0 else None
            if line is not None:  # whose body is already as it is hashed, which the fold checks
                self.row["events"] += 1
                yield Event(int(line[1]), line[2], line[3], line[4], line[5])
                place = end + 1
                continue
            if place < len(self._text) and self._text[place] == "]":
                return
            try:
                content, place = decoder.raw_decode(self._text, place)
            except json.JSONDecodeError:
                self._text, place = self._text[place:], 0
                if len(self._text) > _LONGEST_PIECE:
                    raise LogError("an event that is too long", self.row["events"] + 1) from None
                if not self._more():
                    raise LogError("the file ends in the middle of an event", self.row["events"] + 1) from None
                continue
            self.row["events"] += 1
            body = canonical_json(content["content"])
            yield Event(content["number"], content["kind"], content["time"], body, content["hash"])
