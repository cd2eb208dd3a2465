"""Colours of policies and arms, which are far apart: nobody takes an arm for a policy."""

from __future__ import annotations

# of policies, on light pages and on dark ones; they can be told apart with any colour vision (after Okabe and Ito)
POLICY_COLOURS = (
    ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#6A3D1F", "#6E6E6E"),
    ("#58B0F0", "#FF9248", "#2FCB9E", "#EC9ACB", "#E9C04A", "#C99A78", "#B5B5B5"),
)
# of arms, which fill bars: none is close to the colour of a policy, and they can be told apart without red and green.
# With more arms than colours, those that are pulled most have colours of their own and all others share a grey: no two
# arms in a legend look alike.
ARM_COLOURS = ("#7E57C2", "#80DEEA", "#9CCC3C", "#882255", "#F4F08A", "#0097A7", "#EE6677")
OTHERS = "#8C8C8C"
