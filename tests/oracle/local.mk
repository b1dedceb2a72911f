# comparisons with independent oracles
