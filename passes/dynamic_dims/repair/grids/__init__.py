"""Tables that follow from the sizes of feature maps: anchor grids, strides, priors, position encodings and masks.

Exporters store such a table as a constant for one height and width. `tables` decides for one constant:

- `structure` finds the feature maps along an axis of the constant.
- `columns` and `fits` fit each column of numbers to a law, and `sizes` does so for sizes of boxes.
- `laws` combines the columns into one formula for each feature map.
- `waves`, `logits` and `windows` have laws that are not affine.
- `formula` evaluates a formula with numpy, and `writer` writes it as nodes.

`coordinates`, `image_sizes` and `indices` follow numbers beside these tables that hold a size too.
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
