# layer engine: cache, scheduler, the one engine thread
