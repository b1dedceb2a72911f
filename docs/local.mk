EXTRA_DIST += docs/api.md docs/formats.md docs/kv-cache.md
dist_man_MANS = docs/man/tellerd.8 docs/man/tellerd.conf.5
if HAVE_CURL
dist_man_MANS += docs/man/tellerctl.1
else
EXTRA_DIST += docs/man/tellerctl.1
endif
