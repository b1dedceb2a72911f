dist_man_MANS = docs/man/tellerd.8 docs/man/tellerd.conf.5
