# fuzz targets of layer daemon
