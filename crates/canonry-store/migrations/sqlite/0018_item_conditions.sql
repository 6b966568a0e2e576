-- What keeps an item open that a plan would close: somebody has it in a milestone, or its conversation is locked. Null is
-- unknown.
ALTER TABLE items ADD COLUMN has_milestone BOOLEAN;
ALTER TABLE items ADD COLUMN locked BOOLEAN;
