# unit tests of layer backend
