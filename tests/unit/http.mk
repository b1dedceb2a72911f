# layer http
