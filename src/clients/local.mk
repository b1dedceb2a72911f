# clients: tellerctl
if HAVE_CURL
bin_PROGRAMS += tellerctl
tellerctl_SOURCES = \
	src/clients/tellerctl.c src/clients/ctl_priv.h \
	src/clients/ctl_http.c \
	src/clients/ctl_sse.c \
	src/clients/ctl_line.c \
	src/clients/ctl_admin.c \
	src/clients/ctl_chat.c
tellerctl_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS) $(EDIT_CFLAGS)
tellerctl_LDADD = libtellerd.a $(CURL_LIBS) $(EDIT_LIBS) $(JANSSON_LIBS) -lm
endif
