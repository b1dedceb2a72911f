# fuzz targets of layer model
