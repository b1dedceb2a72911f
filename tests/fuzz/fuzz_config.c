/*
 * The reader of configuration files, and every value in it: whatever the bytes, the file is taken
 * or refused with a place, and what was taken can be written and read again.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tellerd/daemon/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

/* Loads the bytes as the file that --config names. */
static enum status load(const char *bytes, size_t len, struct config *config, struct error *err)
{
    char *argv[3] = {(char[]){"tellerd"}, (char[]){"-c"}, path};
    enum config_command command;
    if (!path[0]) {
        snprintf(path, sizeof path, "/tmp/fuzz_config.XXXXXX");
        int fd = mkstemp(path);
        REQUIRE(fd >= 0);
        close(fd);
        atexit(remove_file);
    }
    FILE *file = fopen(path, "wb");
    REQUIRE(file);
    REQUIRE(fwrite(bytes, 1, len, file) == len);
    REQUIRE(fclose(file) == 0);
    return config_load(3, argv, NULL, config, &command, NULL, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config config, again;
    struct error err = {.text = ""};
    struct buf first, second;
    if (load((const char *)data, size, &config, &err) != STATUS_OK) {
        REQUIRE(err.status != STATUS_OK && strncmp(err.text, path, strlen(path)) == 0);
        return 0;
    }
    buf_init(&first, 64 << 20);
    buf_init(&second, 64 << 20);
    config_write_dump(&config, &first);
    config_done(&config);
    REQUIRE(!first.overflow);
    if (load(first.data, first.len, &again, &err) == STATUS_OK) {
        config_write_dump(&again, &second);
        config_done(&again);
        REQUIRE(load(second.data, second.len, &again, &err) == STATUS_OK);
        buf_reset(&first);
        config_write_dump(&again, &first);
        config_done(&again);
        REQUIRE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    } else {
        /* only a file near the limit of its size may fail to come back */
        REQUIRE(size > 100000);
    }
    buf_done(&first);
    buf_done(&second);
    return 0;
}
