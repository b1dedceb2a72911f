# fuzz targets of layer api
fuzz_programs += tests/fuzz/fuzz_request_json
tests_fuzz_fuzz_request_json_SOURCES = tests/fuzz/fuzz_request_json.c $(FUZZ_MAIN)
tests_fuzz_fuzz_request_json_CFLAGS = $(AM_CFLAGS)
tests_fuzz_fuzz_request_json_LDFLAGS = $(FUZZ_FLAGS)
tests_fuzz_fuzz_request_json_LDADD = $(TELLERD_LIBS)
