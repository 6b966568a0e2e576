INSERT INTO issued_markers (digest, issued_at) VALUES ('0123456789abcdef0123456789abcdef', 1760000000000000);
