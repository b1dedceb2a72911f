/*
 * The daemon's entry: reads the command line and answers the questions that need no model.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("%s\n%s\n", PACKAGE_STRING, BUILD_SUMMARY);
        return 0;
    }
    fprintf(stderr, "usage: tellerd --version\n");
    return 64;
}
