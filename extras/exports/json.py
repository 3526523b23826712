"""A session as JSON."""

import json
from dataclasses import asdict
from typing import Final

from pipeline.session.export import Export
from pipeline.session.session import Session


def _json(session: Session) -> str:
    content = asdict(session)
    del content["owner"]
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


EXPORT: Final = Export("json", _json)
