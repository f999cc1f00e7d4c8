"""Links between Crosstie and Crossbar.io."""
