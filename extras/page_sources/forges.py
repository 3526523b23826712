"""Code forges: GitHub, GitLab, Gitea and Forgejo."""

from typing import Final

from extras.forge import FORGES, KINDS, forge_at
from pipeline.fetch.page_source import PageSource

PAGE_SOURCE: Final = PageSource(known=FORGES, kinds=KINDS, at=forge_at)
