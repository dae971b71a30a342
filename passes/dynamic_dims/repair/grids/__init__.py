"""Tables that follow from the sizes of feature maps: anchor grids, strides, priors, position encodings and masks.

Exporters store such a table as a constant for one height and width. `structure` finds the feature maps along an axis of the
constant, `columns` and `fits` fit each column of numbers to a law, `laws` combine the columns into one formula for each
feature map, `waves`, `logits` and `borders` know laws that are not affine. `formula` evaluates a formula with numpy, and
`writer` writes it as nodes. `tables` decides for one constant.
"""

from __future__ import annotations

from .constants import constant_array
from .coordinates import track_coordinates
from .image_sizes import follow_image_sizes
from .indices import follow_cell_indices
from .tables import computed_table

__all__ = [
    "computed_table",
    "constant_array",
    "follow_cell_indices",
    "follow_image_sizes",
    "track_coordinates",
]
