# unit tests of layer daemon
