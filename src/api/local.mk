# layer api: HTTP endpoints in terms of the engine
