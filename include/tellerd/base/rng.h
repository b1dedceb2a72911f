#ifndef TELLERD_BASE_RNG_H
#define TELLERD_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/*
 * Counter-based generator (Philox4x32-10, Salmon et al. 2011): number n of stream (seed, stream) is
 * a pure function, so a preempted or re-run sequence draws the same numbers whatever else ran.  Any
 * thread.
 */
uint32_t rng_u32(uint64_t seed, uint64_t stream, uint64_t n);
/* Uniform in [0, 1), 24 bits. */
float rng_uniform(uint64_t seed, uint64_t stream, uint64_t n);
/* Fills out with bytes from the system's generator; aborts when it fails. */
void rng_system_bytes(void *out, size_t len);

#endif
