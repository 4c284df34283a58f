// Part of the compiled core: the JSON of files, so that what reads and writes them needs no JSON library.
#define ISOGLOSS_DEFINE_IO
#include <isogloss/io/safetensors_json.hpp>
