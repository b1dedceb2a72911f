# fuzz targets of layer base
