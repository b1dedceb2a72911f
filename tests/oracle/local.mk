# comparisons with independent oracles

# what the loader reads of a model, as JSON
check_PROGRAMS += tests/oracle/model_info
tests_oracle_model_info_SOURCES = tests/oracle/model_info.c
tests_oracle_model_info_LDADD = $(TELLERD_LIBS)

# the tokenizer as a filter, for tokenizer_oracle.py
check_PROGRAMS += tests/oracle/tokenizer_cli
tests_oracle_tokenizer_cli_SOURCES = tests/oracle/tokenizer_cli.c
tests_oracle_tokenizer_cli_LDADD = $(TELLERD_LIBS)
