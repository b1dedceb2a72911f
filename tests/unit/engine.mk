# unit tests of layer engine
