-- The flagged code with the lines around it, as it was at the reviewed commit; reviews of before have none.
ALTER TABLE finding_sightings ADD COLUMN excerpt TEXT;
