# measurements: built on demand ("make bench/step"), never part of check; of bench/load the counts are tested
EXTRA_PROGRAMS += bench/step
bench_step_SOURCES = bench/step.c
bench_step_LDADD = $(TELLERD_LIBS)
CLEANFILES += bench/step
EXTRA_PROGRAMS += bench/api
bench_api_SOURCES = bench/api.c $(api_harness)
bench_api_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
bench_api_LDADD = $(TELLERD_LIBS)
bench_api_LDFLAGS = $(api_harness_wrap)
CLEANFILES += bench/api
check_PROGRAMS += bench/load
bench_load_SOURCES = bench/load.c
bench_load_LDADD = $(TELLERD_LIBS)
EXTRA_PROGRAMS += bench/limits
bench_limits_SOURCES = bench/limits.c
bench_limits_LDADD = $(TELLERD_LIBS)
CLEANFILES += bench/limits
