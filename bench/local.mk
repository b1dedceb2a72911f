# measurements: built on demand ("make bench/step"), never part of check
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
