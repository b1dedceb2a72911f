# fuzz targets of layer daemon
fuzz_programs += tests/fuzz/fuzz_config
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c $(FUZZ_MAIN)
tests_fuzz_fuzz_config_LDFLAGS = $(FUZZ_FLAGS)
tests_fuzz_fuzz_config_LDADD = $(TELLERD_LIBS)
