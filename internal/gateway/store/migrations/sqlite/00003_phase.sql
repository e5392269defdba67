-- +goose Up

-- The phase that is in the status, to be counted by. A row of before has it from the next time it is written.
ALTER TABLE sandboxes ADD COLUMN phase INTEGER NOT NULL DEFAULT 0;

CREATE INDEX sandboxes_by_phase ON sandboxes (phase);

-- +goose Down

DROP INDEX sandboxes_by_phase;
ALTER TABLE sandboxes DROP COLUMN phase;
