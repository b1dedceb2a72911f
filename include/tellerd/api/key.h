#ifndef TELLERD_API_KEY_H
#define TELLERD_API_KEY_H

#include <stdint.h>

#include "tellerd/base/hash.h"

enum { API_KEY_NAME_MAX = 64 };

/* One API key as it is kept: the key itself never is. */
struct api_key {
    char name[API_KEY_NAME_MAX]; /* tenant; keys of one name are one tenant */
    uint8_t digest[SHA256_BYTES];
};

#endif
