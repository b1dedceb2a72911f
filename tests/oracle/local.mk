# comparisons with independent oracles

# what the loader reads of a model, as JSON
check_PROGRAMS += tests/oracle/model_info
tests_oracle_model_info_SOURCES = tests/oracle/model_info.c
tests_oracle_model_info_LDADD = $(TELLERD_LIBS)

# the tokenizer as a filter, for tokenizer_oracle.py
check_PROGRAMS += tests/oracle/tokenizer_cli
tests_oracle_tokenizer_cli_SOURCES = tests/oracle/tokenizer_cli.c
tests_oracle_tokenizer_cli_LDADD = $(TELLERD_LIBS)

# logits of lines of token ids, for check_logits.py
check_PROGRAMS += tests/oracle/logits_cli
tests_oracle_logits_cli_SOURCES = tests/oracle/logits_cli.c
tests_oracle_logits_cli_LDADD = $(TELLERD_LIBS)

oracle_tests = tests/oracle/test_quant.py tests/oracle/test_forward.py tests/oracle/test_golden.py \
	tests/oracle/test_convert.py tests/oracle/check_loader.py tests/oracle/check_logits.py \
	tests/oracle/tokenizer_oracle.py
dist_check_SCRIPTS += $(oracle_tests)
EXTRA_DIST += tests/golden tests/requirements.txt tests/oracle/README.md tests/oracle/load.py tests/oracle/forward.py \
	tests/oracle/compile_bank.py tests/oracle/tap.py \
	tests/oracle/tokenizer_models.py tests/oracle/tokenizer_texts.py tools/lib tools/make_models.py \
	tools/fetch_model.py tools/fetch-model tools/convert_nanochat.py

# chat templates: the interpreter as a filter, compared with Jinja2
check_PROGRAMS += tests/oracle/jinja_cli
tests_oracle_jinja_cli_SOURCES = tests/oracle/jinja_cli.c
tests_oracle_jinja_cli_LDADD = $(TELLERD_LIBS)
dist_check_SCRIPTS += tests/oracle/jinja_oracle.py
EXTRA_DIST += tests/oracle/jinja_snippets.py tests/oracle/jinja_models.py tests/oracle/jinja_models_tools.py \
	tests/oracle/jinja_random.py
