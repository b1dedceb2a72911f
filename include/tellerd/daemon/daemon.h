#ifndef TELLERD_DAEMON_DAEMON_H
#define TELLERD_DAEMON_DAEMON_H

#include "tellerd/daemon/model_load.h"

enum { EXIT_CONFIG = 78 /* sysexits: the service manager must not restart */ };

/* Reads the command line, does what it asks for, and returns the exit code.  load is model_load, or
 * a test's own. */
int daemon_main(int argc, char **argv, model_load_fn load);

#endif
