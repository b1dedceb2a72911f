# layer base: codes, memory, text, clocks, metrics
