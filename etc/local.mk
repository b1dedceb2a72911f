# The reference configuration is all comments: it is installed where the daemon reads it, unless a file is there already.
EXTRA_DIST += etc/tellerd.conf
tellerdconfdir = $(sysconfdir)/tellerd
install_steps += install-tellerd-conf
uninstall_steps += uninstall-tellerd-conf
.PHONY: install-tellerd-conf uninstall-tellerd-conf
install-tellerd-conf:
	$(MKDIR_P) '$(DESTDIR)$(tellerdconfdir)'
	test -f '$(DESTDIR)$(tellerdconfdir)/tellerd.conf' || \
		$(INSTALL_DATA) $(srcdir)/etc/tellerd.conf '$(DESTDIR)$(tellerdconfdir)/tellerd.conf'
uninstall-tellerd-conf:
	cmp -s $(srcdir)/etc/tellerd.conf '$(DESTDIR)$(tellerdconfdir)/tellerd.conf' && \
		rm -f '$(DESTDIR)$(tellerdconfdir)/tellerd.conf' && rmdir '$(DESTDIR)$(tellerdconfdir)' 2>/dev/null || :

# After a change of the option table: the files that are made from it.
.PHONY: update-docs
update-docs: tellerd$(EXEEXT)
	./tellerd$(EXEEXT) --print-config >$(srcdir)/etc/tellerd.conf
	./tellerd$(EXEEXT) --print-man-options >docs-options.tmp
	sed -e '/^\.\\" BEGIN OPTIONS/r docs-options.tmp' -e '/^\.\\" BEGIN OPTIONS/,/^\.\\" END OPTIONS/{' \
		-e '/^\.\\" \(BEGIN\|END\) OPTIONS/!d' -e '}' $(srcdir)/docs/man/tellerd.conf.5 >docs-page.tmp
	cp docs-page.tmp $(srcdir)/docs/man/tellerd.conf.5
	rm -f docs-options.tmp docs-page.tmp
