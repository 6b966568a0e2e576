-- Eight characters that are a vector of two numbers on either engine; a blank is the width of 32.
INSERT INTO embeddings (item_id, representation, model, dim, vector, embedded_hash, embedded_at)
VALUES (1, 'raw', 'local', 2, '[1.0,.5]', '569363a54b503456ad0292a2db8e4466266a59b97b5077257bd58de6aa12b65e', 1760000000001000);
INSERT INTO token_vectors (item_id, representation, model, embedded_hash, vectors)
VALUES (1, 'raw', 'local', '569363a54b503456ad0292a2db8e4466266a59b97b5077257bd58de6aa12b65e', ' abcdefghijklmnopqrstuvwxyzABCDEF');
