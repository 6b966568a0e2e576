-- The current card of an item by each extractor.
CREATE TABLE intent_cards (
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    extractor TEXT NOT NULL CHECK (extractor IN ('local', 'openai', 'anthropic', 'gemini', 'command')),
    model TEXT NOT NULL,
    schema_version BIGINT NOT NULL,
    prompt_version BIGINT NOT NULL,
    render_version BIGINT NOT NULL,
    -- The item's text that the card is about; a card of another text does not count.
    source_hash TEXT NOT NULL,
    source_version BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('ready', 'failed')),
    card JSONB,
    failure TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (item_id, extractor),
    CHECK ((status = 'ready' AND card IS NOT NULL AND failure IS NULL) OR (status = 'failed' AND card IS NULL AND failure IS NOT NULL))
);
