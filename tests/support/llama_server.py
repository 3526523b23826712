"""Runs llama.cpp's own server (llama-server's code, from the package xllamacpp) until it is killed.

Called as `python llama_server.py ROLE MODEL --host HOST --port PORT`; a role is embedder, reranker
or generator.
"""

import argparse
import importlib
import signal


def main() -> None:
    """Serve the model that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("embedder", "reranker", "generator"))
    parser.add_argument("model")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    library = importlib.import_module("xllamacpp")
    parameters = library.CommonParams()
    parameters.model.path = given.model
    parameters.hostnames, parameters.port = [given.host], given.port
    parameters.cpuparams.n_threads = 1
    parameters.warmup = False
    if given.role == "generator":
        parameters.n_ctx, parameters.n_parallel = 2048, 1
    else:
        parameters.embedding = True
    if given.role == "reranker":
        parameters.pooling_type = library.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
    server = library.Server(parameters)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
