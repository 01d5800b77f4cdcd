"""What each kind of group sends in one step, over which links, who to whom."""
