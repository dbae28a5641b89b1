"""Tables in files become dataclasses, or are refused with the file and what is wrong in it."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from msdnet.errors import FileError, NewerFormatError
from msdnet.tables import read_as, read_table, table_from_json


@dataclass(frozen=True)
class Part:
    size: int


@dataclass(frozen=True)
class Whole:
    part: Part
    format: int = 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", r"not JSON \(Expecting.*"),
        (b"\xff", r"not JSON \('utf-8' codec.*"),
        (b"[]", "must be a table of fields, got list"),
        (b"{}", "must have the field 'part'"),
        (b'{"prat": 1, "part": {"size": 1}}', "has no field 'prat'; did you mean 'part'.*"),
        (b'{"part": 1}', "part: must be a table of fields, got int"),
        (b'{"part": {"sise": 1}}', "part: has no field 'sise'; did you mean 'size'.*"),
    ],
)
def test_a_file_that_is_no_such_table_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "whole.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=rf"^{path}: {reason}$"):
        read_as(Whole, path)


def test_a_file_of_a_newer_format_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "whole.json"
    path.write_text(json.dumps({"format": 2, "part": {"size": 3}}))
    assert read_as(Whole, path, newest=2) == Whole(Part(3), 2)
    for read in (lambda: read_as(Whole, path, newest=1), lambda: read_table(path, newest=1)):
        with pytest.raises(NewerFormatError, match=r"format 2 is newer than this version of msdnet reads \(1\)$"):
            read()


def test_a_text_is_read_as_a_file_is() -> None:
    assert table_from_json('{"format": 2}', "policy", newest=2) == {"format": 2}
    for text, why in (("{", "not JSON"), ("[]", "must be a table of fields"), ('{"format": 2}', "format 2 is newer")):
        with pytest.raises(ValueError, match=f"^policy: {why}"):
            table_from_json(text, "policy", newest=1)
