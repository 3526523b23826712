"""`python -m bench run|figures|mutate …`: the runner of questions, the tables of the documents,
and mutants. `python -m bench.NAME` is each of the other benches."""

import sys
from importlib import import_module

PARTS = ("run", "figures", "mutate")
if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
    sys.exit(f"usage: python -m bench {'|'.join(PARTS)} …")
sys.exit(import_module(f"bench.{sys.argv[1]}").main(sys.argv[2:]))
