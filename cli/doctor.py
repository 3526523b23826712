"""Looking after an installation: `winnow doctor`.

Not for: answering questions.
"""

import json
import sys

from cli.checkup import check_up
from cli.clients import places_here
from cli.model_report import report_roles
from server import VERSION
from server.reading import cache_trouble, status_text
from server.settings import Settings
from server.wiring import open_services


def _show(data: dict[str, object], as_json: bool) -> None:
    if as_json:
        print(json.dumps(data, ensure_ascii=False, indent=2))
    else:
        for key, value in data.items():
            print(f"{key}: {value}")


async def doctor(settings: Settings, as_json: bool) -> int:
    """Try every part once and print what works; return 1 if a part that is set up does not."""
    roles = await report_roles(settings, tried=True)
    report: dict[str, object] = {"winnow": VERSION, "python": sys.version.split()[0]}
    async with open_services(settings) as services:
        for line in status_text(services).splitlines():
            key, _, value = line.partition(": ")
            report[key] = value
        for role in roles:
            report[role.role] = role.line()
        healthy = not cache_trouble(services.stores.stats()) and all(role.healthy for role in roles)
        if not services.chain.names:
            report["search"] = "no provider: set WINNOW_FOLDERS to document folders, or WINNOW_SEARXNG to an instance"
    for check in await check_up(settings, places_here()):
        report[check.name] = check.line
        healthy = healthy and check.healthy
    _show(report, as_json)
    return 0 if healthy else 1
