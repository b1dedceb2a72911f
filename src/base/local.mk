# layer base: codes, memory, text, clocks, metrics
libtellerd_a_SOURCES += \
	src/base/status.c include/tellerd/base/status.h \
	src/base/mem.c include/tellerd/base/mem.h \
	src/base/arena.c include/tellerd/base/arena.h \
	src/base/buf.c include/tellerd/base/buf.h \
	src/base/utf8.c include/tellerd/base/utf8.h \
	src/base/clock.c include/tellerd/base/clock.h \
	src/base/log.c include/tellerd/base/log.h \
	src/base/queue.c include/tellerd/base/queue.h \
	src/base/mapfile.c include/tellerd/base/mapfile.h \
	src/base/metrics.c include/tellerd/base/metrics.h \
	src/base/rng.c include/tellerd/base/rng.h \
	src/base/hash.c include/tellerd/base/hash.h
