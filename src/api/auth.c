#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api_priv.h"
#include "tellerd/base/mem.h"

/*
 * Bearer keys (RFC 6750 section 2.1).  Only SHA-256 digests are kept; each check hashes what came
 * and compares it with every digest in full, so that its time tells neither which key matched nor
 * how much of one.
 */

static uint32_t tenant_of(struct api *api, const char *name)
{
    for (uint32_t i = 1; i < api->n_tenants; i++)
        if (strcmp(api->tenants[i], name) == 0)
            return i;
    api->tenants = xreallocarray(api->tenants, api->n_tenants + 1, sizeof *api->tenants);
    snprintf(api->tenants[api->n_tenants], sizeof *api->tenants, "%s", name);
    return api->n_tenants++;
}

void api_set_keys(struct api *api, const struct api_key *keys, size_t n_keys)
{
    free(api->keys);
    api->keys = n_keys ? xcalloc(n_keys, sizeof *api->keys) : NULL;
    api->n_keys = n_keys;
    if (api->n_tenants == 0)
        tenant_of(api, "anonymous"); /* tenant 0; tenants keep their numbers over a reload */
    for (size_t i = 0; i < n_keys; i++) {
        memcpy(api->keys[i].digest, keys[i].digest, SHA256_BYTES);
        api->keys[i].tenant = tenant_of(api, keys[i].name);
    }
}

/* The token of "Bearer TOKEN"; NULL when it is anything else. */
static const char *bearer_token(const char *header, size_t *ret_len)
{
    if (!header || strncasecmp(header, "bearer", 6) != 0 || (header[6] != ' ' && header[6] != '\t'))
        return NULL;
    header += 6;
    header += strspn(header, " \t");
    size_t len = strlen(header);
    while (len > 0 && (header[len - 1] == ' ' || header[len - 1] == '\t'))
        len--;
    *ret_len = len;
    return len > 0 ? header : NULL;
}

enum status auth_check(const struct api *api, const struct http_request *request,
                       uint32_t *ret_tenant, struct error *err)
{
    if (api->n_keys == 0) {
        *ret_tenant = 0;
        return STATUS_OK;
    }
    size_t len = 0;
    const char *token = http_request_header_count(request, "authorization") == 1
                            ? bearer_token(http_request_header(request, "authorization"), &len)
                            : NULL;
    uint8_t digest[SHA256_BYTES];
    sha256(token ? token : "", len, digest);
    uint32_t tenant = 0;
    for (size_t i = 0; i < api->n_keys; i++)
        if (digest_equal(digest, api->keys[i].digest) && token)
            tenant = api->keys[i].tenant;
    if (tenant == 0)
        return error_set(err, STATUS_UNAUTHORIZED,
                         "missing or wrong API key: send it as \"Authorization: Bearer KEY\"");
    *ret_tenant = tenant;
    return STATUS_OK;
}
