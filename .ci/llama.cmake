# Winnow needs the library alone: without the common code and vision of the programs that come with llama.cpp it compiles
# in a third of the time.
set(LLAMA_BUILD_COMMON OFF)
