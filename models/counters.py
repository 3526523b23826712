"""What an engine of a worker process has computed since it began. Not for: the engines."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """What an engine has computed since it began."""

    calls: int = 0
    batches: int = 0
    tokens: int = 0
    calls_a_batch: int = 0
    """Most calls that one batch held."""

    def add_batch(self, *, tokens: int, calls: int) -> None:
        """Count one batch of `tokens` for `calls` calls."""
        self.batches += 1
        self.tokens += tokens
        self.calls_a_batch = max(self.calls_a_batch, calls)

    def told(self) -> dict[str, object]:
        """Return the counts by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
