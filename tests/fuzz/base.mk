# fuzz targets of layer base
fuzz_programs += tests/fuzz/fuzz_utf8_json
tests_fuzz_fuzz_utf8_json_SOURCES = tests/fuzz/fuzz_utf8_json.c $(FUZZ_MAIN)
tests_fuzz_fuzz_utf8_json_LDFLAGS = $(FUZZ_FLAGS)
tests_fuzz_fuzz_utf8_json_LDADD = $(TELLERD_LIBS)
