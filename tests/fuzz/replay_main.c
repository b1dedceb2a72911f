/*
 * Replays a corpus through a fuzz target when libFuzzer is not linked in, speaking TAP: one case
 * per file of $SRCDIR/tests/fuzz/corpus/<name>, where the program is called fuzz_<name>; or of the
 * files given as arguments.
 */
#include "config.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *data =
        malloc(size > 0 ? (size_t)size : 1); /* exact size: ASan sees reads past the end */
    size_t got = data ? fread(data, 1, (size_t)size, file) : 0;
    fclose(file);
    LLVMFuzzerTestOneInput(data, got);
    free(data);
    return got == (size_t)size ? 0 : -1;
}

static int replay_all(char **paths, int n_paths)
{
    int failed = 0;
    printf("1..%d\n", n_paths);
    for (int i = 0; i < n_paths; i++) {
        int bad = replay(paths[i]);
        const char *base = strrchr(paths[i], '/');
        printf("%sok %d - replayed %s\n", bad ? "not " : "", i + 1, base ? base + 1 : paths[i]);
        fflush(stdout);
        failed |= bad;
    }
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return replay_all(argv + 1, argc - 1);
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    const char *source = getenv("SRCDIR") ? getenv("SRCDIR") : ".";
    if (strncmp(name, "lt-", 3) == 0)
        name += 3;
    if (strncmp(name, "fuzz_", 5) == 0)
        name += 5;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", source, name);
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0) {
        printf("1..1\nnot ok 1 - no corpus at %s\n", folder);
        return 1;
    }
    char **paths = calloc((size_t)n + 1, sizeof *paths);
    int n_paths = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.' &&
            asprintf(&paths[n_paths], "%s/%s", folder, entries[i]->d_name) > 0)
            n_paths++;
        free(entries[i]);
    }
    free(entries);
    int failed = n_paths > 0 ? replay_all(paths, n_paths) : 1;
    if (n_paths == 0)
        printf("1..1\nnot ok 1 - empty corpus at %s\n", folder);
    for (int i = 0; i < n_paths; i++)
        free(paths[i]);
    free(paths);
    return failed;
}
