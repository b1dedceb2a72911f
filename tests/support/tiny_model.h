#ifndef TELLERD_SUPPORT_TINY_MODEL_H
#define TELLERD_SUPPORT_TINY_MODEL_H

#include <stdint.h>

/*
 * Writes a small random llama checkpoint (GGUF, F32) that has all value sources: layers residual,
 * residual+bank, bank, bank; 64 wide, 2 heads over 1 kv head of 32, a sink row.  The same file for
 * the same seed.
 */
enum { TINY_MODEL_TOKENS = 256, TINY_MODEL_EOS = 0 };
void tiny_model_write(const char *path, uint64_t seed);

#endif
