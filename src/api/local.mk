# layer api: HTTP endpoints in terms of the engine
libtellerd_a_SOURCES += \
	include/tellerd/api/api.h src/api/api_priv.h \
	src/api/auth.c \
	src/api/generate.c \
	src/api/generate_request.c include/tellerd/api/generate_request.h \
	src/api/generate_response.c \
	src/api/health.c \
	src/api/json_read.c include/tellerd/api/json_read.h \
	src/api/logprobs_json.c \
	src/api/models.c \
	src/api/prompt.c \
	src/api/routes.c \
	src/api/text_stream.c include/tellerd/api/text_stream.h \
	src/api/tokenize.c
