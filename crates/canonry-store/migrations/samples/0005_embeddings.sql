INSERT INTO calibrations (model, calibration, fitted_at) VALUES ('remote', '{"points":[[0.5,0.75]]}', 1760000000000000);
