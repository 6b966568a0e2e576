UPDATE items SET has_milestone = TRUE, locked = FALSE WHERE id = 1;
