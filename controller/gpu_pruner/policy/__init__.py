"""GPU shares, windows, floors and sharing plans. Pure. Holds nothing yet."""
