# fuzz targets of layer engine
