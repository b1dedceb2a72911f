# fuzz targets of layer http
fuzz_programs += tests/fuzz/fuzz_http
tests_fuzz_fuzz_http_SOURCES = tests/fuzz/fuzz_http.c $(FUZZ_MAIN)
tests_fuzz_fuzz_http_LDFLAGS = $(FUZZ_FLAGS)
tests_fuzz_fuzz_http_LDADD = $(TELLERD_LIBS)
