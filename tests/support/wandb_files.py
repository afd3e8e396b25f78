"""Reads the files that W&B writes offline: records of protocol buffers in the log format of LevelDB."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEADER, PREFIX = 32768, 7, 7  # bytes; a fragment has a checksum, its length, and whether it is a record's last


def records(file: Path) -> Iterator[bytes]:
    """The records of a file. A record that does not fit a block goes on in the next one."""
    content, place, record = file.read_bytes(), PREFIX, b""
    while place + HEADER <= len(content):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        record += content[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def read(file: Path) -> dict[str, Any]:
    """What W&B was told of a run: its name, group and config, the rows of its history, its summary, and
    whether it has ended."""
    from wandb.proto import wandb_internal_pb2 as pb

    told: dict[str, Any] = {"config": {}, "history": [], "summary": {}, "ended": False}
    for text in records(file):
        record = pb.Record()
        record.ParseFromString(text)
        if record.HasField("run"):
            told |= {"id": record.run.run_id, "name": record.run.display_name, "group": record.run.run_group}
            told["config"] |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        elif record.HasField("history"):
            items = {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            told["history"].append({key: json.loads(value) for key, value in items.items()})
        elif record.HasField("summary"):
            told["summary"] |= {item.key: item.value_json for item in record.summary.update}
        elif record.HasField("exit"):
            told["ended"] = True
    return told
