-- +goose Up

-- The workload template that a sandbox was made from: openshell.v1.SandboxWorkloadTemplateProvenance, NULL when from none.
ALTER TABLE sandboxes ADD COLUMN created_from BYTEA;

-- +goose Down

ALTER TABLE sandboxes DROP COLUMN created_from;
