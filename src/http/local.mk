# layer http: sockets and HTTP/1.1; knows nothing of models
if LLHTTP_FROM_SOURCE
noinst_LIBRARIES += libllhttp-local.a
libllhttp_local_a_SOURCES = src/http/llhttp_api.c src/http/llhttp_http.c src/http/llhttp_llhttp.c
libllhttp_local_a_CPPFLAGS = $(AM_CPPFLAGS) $(LLHTTP_SRC_CPPFLAGS)
libllhttp_local_a_CFLAGS = $(LLHTTP_CFLAGS) -w
TELLERD_LIBS += libllhttp-local.a
endif

libtellerd_a_SOURCES += \
	src/http/request_parser.c include/tellerd/http/request.h \
	src/http/conn.c src/http/http_priv.h \
	src/http/response_writer.c include/tellerd/http/exchange.h \
	src/http/cors.c \
	src/http/server.c include/tellerd/http/server.h
