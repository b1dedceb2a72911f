#ifndef TELLERD_MODEL_TEXT_RUN_H
#define TELLERD_MODEL_TEXT_RUN_H

#include <stddef.h>

/* A run of bytes of a text: [start, start + len).  In a list: ascending, not touching. */
struct text_run {
    size_t start;
    size_t len;
};

#endif
