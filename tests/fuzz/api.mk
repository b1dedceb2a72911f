# fuzz targets of layer api
