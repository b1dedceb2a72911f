# unit tests of layer model
