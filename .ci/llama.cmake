# Winnow needs the library alone: without the common code and vision of the programs that come with llama.cpp it takes
# 170 processor seconds to compile.
set(LLAMA_BUILD_COMMON OFF)
