args = (x, y, z)
