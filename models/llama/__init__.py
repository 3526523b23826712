"""Models in GGUF files, through llama.cpp in a process of its own."""
