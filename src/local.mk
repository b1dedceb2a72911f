# One static library for the daemon, the tests and the fuzzers; each layer lists its own sources.
noinst_LIBRARIES += libtellerd.a
libtellerd_a_SOURCES =
TELLERD_LIBS = libtellerd.a

include src/base/local.mk
include src/backend/local.mk
include src/model/local.mk
include src/engine/local.mk
include src/http/local.mk
include src/api/local.mk
include src/daemon/local.mk
include src/clients/local.mk

TELLERD_LIBS += $(UV_LIBS) $(JANSSON_LIBS) $(LLHTTP_LIBS) $(XXHASH_LIBS) $(UTF8PROC_LIBS) -lm
