# unit tests of layer api
