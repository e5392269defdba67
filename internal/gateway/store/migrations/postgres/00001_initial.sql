-- +goose Up

-- Times are microseconds since 1970. Names compare and sort byte by byte, whatever the collation of the database.

CREATE TABLE workspaces (
    name             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    id               TEXT COLLATE "C" NOT NULL UNIQUE,
    labels           TEXT             NOT NULL, -- JSON object
    resource_version BIGINT           NOT NULL,
    created_at       BIGINT           NOT NULL
);

CREATE TABLE sandboxes (
    id               TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace        TEXT COLLATE "C" NOT NULL REFERENCES workspaces (name),
    name             TEXT COLLATE "C" NOT NULL,
    created_at       BIGINT           NOT NULL,
    labels           TEXT             NOT NULL, -- JSON object
    annotations      TEXT             NOT NULL, -- JSON object
    resource_version BIGINT           NOT NULL,
    spec             BYTEA            NOT NULL, -- openshell.v1.SandboxSpec
    status           BYTEA            NOT NULL, -- openshell.v1.SandboxStatus
    operation_id     TEXT COLLATE "C" NOT NULL, -- empty when nothing is under way
    operation        TEXT             NOT NULL, -- JSON object
    due_at           BIGINT,                    -- when the operation is to be taken up
    UNIQUE (workspace, name)
);

-- Lists run along these, over one workspace or over all.
CREATE INDEX sandboxes_of_workspace ON sandboxes (workspace, created_at, name, id);
CREATE INDEX sandboxes_in_order ON sandboxes (created_at, name, workspace, id);

CREATE INDEX sandboxes_due ON sandboxes (due_at) WHERE due_at IS NOT NULL;

-- One row a label. It repeats what lists are ordered by, none of which ever changes.
CREATE TABLE sandbox_labels (
    sandbox_id TEXT COLLATE "C" NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    workspace  TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    value      TEXT COLLATE "C" NOT NULL,
    created_at BIGINT           NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (sandbox_id, key)
);

CREATE INDEX sandbox_labels_of_workspace ON sandbox_labels (workspace, key, value, created_at, name, sandbox_id);
CREATE INDEX sandbox_labels_in_order ON sandbox_labels (key, value, created_at, name, workspace, sandbox_id);

-- +goose Down

DROP TABLE sandbox_labels;
DROP TABLE sandboxes;
DROP TABLE workspaces;
