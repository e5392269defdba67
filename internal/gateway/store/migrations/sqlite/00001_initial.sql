-- +goose Up

-- Times are microseconds since 1970. Text compares byte by byte (SQLite's BINARY collation).

CREATE TABLE workspaces (
    name             TEXT    NOT NULL PRIMARY KEY,
    id               TEXT    NOT NULL UNIQUE,
    labels           TEXT    NOT NULL, -- JSON object
    resource_version INTEGER NOT NULL,
    created_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sandboxes (
    id               TEXT    NOT NULL PRIMARY KEY,
    workspace        TEXT    NOT NULL REFERENCES workspaces (name),
    name             TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    labels           TEXT    NOT NULL, -- JSON object
    annotations      TEXT    NOT NULL, -- JSON object
    resource_version INTEGER NOT NULL,
    spec             BLOB    NOT NULL, -- openshell.v1.SandboxSpec
    status           BLOB    NOT NULL, -- openshell.v1.SandboxStatus
    operation_id     TEXT    NOT NULL, -- empty when nothing is under way
    operation        TEXT    NOT NULL, -- JSON object
    due_at           INTEGER,          -- when the operation is to be taken up
    UNIQUE (workspace, name)
) STRICT;

-- Lists run along these, over one workspace or over all.
CREATE INDEX sandboxes_of_workspace ON sandboxes (workspace, created_at, name, id);
CREATE INDEX sandboxes_in_order ON sandboxes (created_at, name, workspace, id);

CREATE INDEX sandboxes_due ON sandboxes (due_at) WHERE due_at IS NOT NULL;

-- One row a label. It repeats what lists are ordered by, none of which ever changes.
CREATE TABLE sandbox_labels (
    sandbox_id TEXT    NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    workspace  TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    PRIMARY KEY (sandbox_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX sandbox_labels_of_workspace ON sandbox_labels (workspace, key, value, created_at, name, sandbox_id);
CREATE INDEX sandbox_labels_in_order ON sandbox_labels (key, value, created_at, name, workspace, sandbox_id);

-- +goose Down

DROP TABLE sandbox_labels;
DROP TABLE sandboxes;
DROP TABLE workspaces;
