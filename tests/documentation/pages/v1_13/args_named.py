args = (
    x,
    {
        "y": input_y,
        "z": input_z
    }
)
