"""A reranker behind a server: `/rerank` in the form of Jina and Cohere (llama-server, vLLM, Infinity) or of TEI.

Which form a server speaks is seen from its first answer and kept. Not for: other roles (`openai.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.protocols import Ability
from models.remote.client import RefusedCall
from models.remote.model import RemoteModel, by_index, shortened

Form = Literal["documents", "texts"]
OTHER_FORM: Final = (400, 404, 405, 422)
"""What a server says to a request in the other's form, or on the other's path."""


class OpenAIReranker(RemoteModel):
    """A `Reranker` behind `/rerank`."""

    _form: Form | None = None

    @property
    def abilities(self) -> frozenset[Ability]:
        """Reranking."""
        return frozenset({"rerank"})

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], as the server gives them: higher is better, the scale is the model's.

        Raises:
            ModelError: The server refused, was silent, or left texts without a score.
        """
        if not texts:
            return np.zeros(0, dtype=np.float32)
        await self.prepare()
        size = self.texts_a_request()
        starts = range(0, len(texts), size)
        return np.concatenate([await self._part(query, texts[start : start + size]) for start in starts])

    async def _part(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        form: Form = self._form or ("texts" if self.server == "TEI" else "documents")
        try:
            found = await self._asked(form, query, texts)
        except RefusedCall as error:
            if self._form is not None or error.status not in OTHER_FORM or error.too_long:
                raise
            form = "texts" if form == "documents" else "documents"
            try:
                found = await self._asked(form, query, texts)
            except ModelError:
                raise error from None  # the first form is the one that most servers speak: its refusal says more
        self._form = form
        return found

    async def _asked(self, form: Form, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        async def ask(cut: int) -> object:
            shown = shortened(texts, cut)
            asked = shortened([query], cut)[0]
            if form == "documents":
                body = {"query": asked, "documents": shown, "top_n": len(texts), "return_documents": False}
                return await self._endpoint.post("/rerank", body)
            # TEI keeps the call at its root, whatever base URL its OpenAI calls have, and cuts texts itself.
            own: dict[str, object] = {"query": asked, "texts": shown, "raw_scores": True, "truncate": True}
            return await self._endpoint.ask("POST", f"{self._endpoint.root}/rerank", own)

        answer = await self.fitting(ask)
        try:
            rows = answer["results"] if isinstance(answer, Mapping) else answer
            key = "relevance_score" if isinstance(answer, Mapping) else "score"
            found = np.array(by_index(rows, key, len(texts)), dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise self._endpoint.nonsense("/rerank", answer) from error
        if found.ndim != 1 or not np.isfinite(found).all():
            raise self._endpoint.nonsense("/rerank", answer)
        return found
