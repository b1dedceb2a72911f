# unit tests of layer base
