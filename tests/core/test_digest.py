"""One canonical JSON for every digest: its bytes are pinned, and nobody else writes one."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import banditto
from banditto.core.digest import canonical_json, digest_of, sha256_of

CONTENT = {"b": [1, 2.5, -0.0, 1e-7, 10**20], "a": {"ü": True, "n": None}, "c": "line\n\u2028\U0001f680"}
TEXT = r'{"a":{"n":null,"\u00fc":true},"b":[1,2.5,-0.0,1e-07,100000000000000000000],"c":"line\n\u2028\ud83d\ude80"}'


def test_the_bytes_and_their_sha256_are_pinned() -> None:
    assert canonical_json(CONTENT) == TEXT
    assert canonical_json({key: CONTENT[key] for key in "cab"}) == TEXT
    assert digest_of(CONTENT) == sha256_of(TEXT)
    assert digest_of({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_number_for_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json([value])


def test_no_other_module_writes_canonical_json() -> None:
    folder = Path(banditto.__file__).parent
    pattern = re.compile(r"sort_keys=True[^)]*separators|separators=[^)]*sort_keys=True")
    found = {path.name for path in folder.rglob("*.py") if pattern.search(path.read_text())}
    assert found == {"digest.py"}
