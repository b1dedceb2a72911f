TEST_EXTENSIONS = .sh .py
SH_LOG_COMPILER = $(SHELL)
PY_LOG_COMPILER = $(PYTHON_TESTS)
# libcheck speaks TAP, so "make check" counts test cases, not programs.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
PY_LOG_DRIVER = $(LOG_DRIVER)
PYTHON_TESTS = $${TELLERD_PYTHON:-python3}

UNIT_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -I$(top_srcdir)/tests
UNIT_LIBS = $(TELLERD_LIBS) $(CHECK_LIBS)
# programs of test cases, of fuzz targets
unit_programs =
fuzz_programs =
# the programs among them that start threads (run under TSan), and the scripts that start a daemon
thread_programs = tests/unit/test_queue tests/unit/test_engine tests/unit/test_engine_cancel tests/unit/test_engine_stress \
	tests/unit/test_forward_gpt tests/unit/test_cpu_product
blackbox_tests =

include tests/unit/base.mk
include tests/unit/backend.mk
include tests/unit/model.mk
include tests/unit/engine.mk
include tests/unit/http.mk
include tests/unit/api.mk
include tests/unit/daemon.mk
include tests/unit/clients.mk
include tests/fuzz/base.mk
include tests/fuzz/backend.mk
include tests/fuzz/model.mk
include tests/fuzz/engine.mk
include tests/fuzz/http.mk
include tests/fuzz/api.mk
include tests/fuzz/daemon.mk
include tests/fuzz/clients.mk
include tests/oracle/local.mk
include tests/blackbox/local.mk

if HAVE_CHECK
check_PROGRAMS += $(unit_programs)
endif
check_PROGRAMS += $(fuzz_programs)

# A fuzz target FOO: tests/fuzz/fuzz_FOO.c with FUZZ_MAIN beside it; its corpus is tests/fuzz/corpus/FOO.
if FUZZING
FUZZ_MAIN =
FUZZ_FLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
else
FUZZ_MAIN = tests/fuzz/replay_main.c
FUZZ_FLAGS = $(AM_LDFLAGS)
endif
lint_scripts = tests/lint/layers.sh tests/lint/file_length.sh tests/lint/banned.sh tests/lint/headers.sh tests/lint/options_documented.sh
dist_check_SCRIPTS += $(lint_scripts)

if !FUZZING
if HAVE_CHECK
TESTS += $(unit_programs)
endif
TESTS += $(fuzz_programs) $(dist_check_SCRIPTS)
endif
# Subsets for `make check TESTS='$(select_unit)'`: C programs; C programs and black box; what starts threads.
select_unit = $(unit_programs) $(fuzz_programs)
select_sanitizer = $(unit_programs) $(fuzz_programs) $(blackbox_tests)
select_threads = $(thread_programs) $(blackbox_tests)
EXTRA_DIST += tests/fuzz/corpus
AM_TESTS_ENVIRONMENT = CK_TAP_LOG_FILE_NAME=-; export CK_TAP_LOG_FILE_NAME; CK_VERBOSITY=silent; export CK_VERBOSITY; \
	TELLERD='$(abs_builddir)/tellerd'; export TELLERD; TELLERCTL='$(abs_builddir)/tellerctl'; export TELLERCTL; \
	SRCDIR='$(abs_srcdir)'; export SRCDIR; BUILDDIR='$(abs_builddir)'; export BUILDDIR; CC='$(CC)'; export CC;
