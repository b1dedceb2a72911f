# fuzz targets of the clients
fuzz_programs += tests/fuzz/fuzz_sse
tests_fuzz_fuzz_sse_SOURCES = tests/fuzz/fuzz_sse.c src/clients/ctl_sse.c $(FUZZ_MAIN)
tests_fuzz_fuzz_sse_LDFLAGS = $(FUZZ_FLAGS)
tests_fuzz_fuzz_sse_LDADD = $(TELLERD_LIBS)
