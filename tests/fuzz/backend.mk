# fuzz targets of layer backend
