UPDATE items SET changes_as_of = 1760000000000004 WHERE id = 2;
