-- +goose Up

-- When the deletion of a workspace was first asked for. From then on it takes nothing new.
ALTER TABLE workspaces ADD COLUMN terminating_at INTEGER;

CREATE INDEX workspaces_in_order ON workspaces (created_at, name, id);

CREATE TABLE workspace_labels (
    workspace TEXT NOT NULL REFERENCES workspaces (name) ON DELETE CASCADE,
    key       TEXT NOT NULL,
    value     TEXT NOT NULL,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;

-- Whatever is neither a workspace nor a sandbox. A child of a sandbox is known by that one's id, and goes with it.
CREATE TABLE objects (
    id               TEXT    NOT NULL PRIMARY KEY,
    kind             TEXT    NOT NULL,
    workspace        TEXT    NOT NULL, -- empty when it is in none
    sandbox_id       TEXT    REFERENCES sandboxes (id) ON DELETE CASCADE,
    name             TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    labels           TEXT    NOT NULL, -- JSON object
    resource_version INTEGER NOT NULL,
    payload          BLOB    NOT NULL
) STRICT;

-- Names. Lists by name run along the first.
CREATE UNIQUE INDEX objects_by_name ON objects (kind, name, workspace) WHERE sandbox_id IS NULL;
CREATE UNIQUE INDEX objects_by_sandbox ON objects (sandbox_id, kind, name) WHERE sandbox_id IS NOT NULL;

-- Lists by age run along these: over one workspace, over all, over one sandbox.
CREATE INDEX objects_of_workspace ON objects (workspace, kind, created_at, name, id);
CREATE INDEX objects_in_order ON objects (kind, created_at, name, workspace, id);
CREATE INDEX objects_of_sandbox ON objects (sandbox_id, kind, created_at, name, id);

CREATE TABLE object_labels (
    object_id TEXT NOT NULL REFERENCES objects (id) ON DELETE CASCADE,
    key       TEXT NOT NULL,
    value     TEXT NOT NULL,
    PRIMARY KEY (object_id, key)
) STRICT, WITHOUT ROWID;

-- What needs an object: either a sandbox or another object. The database itself refuses to delete what is needed.
CREATE TABLE object_references (
    target_id  TEXT NOT NULL REFERENCES objects (id),
    sandbox_id TEXT REFERENCES sandboxes (id) ON DELETE CASCADE,
    object_id  TEXT REFERENCES objects (id) ON DELETE CASCADE
) STRICT;

CREATE INDEX object_references_to ON object_references (target_id);
CREATE UNIQUE INDEX object_references_of_sandbox ON object_references (sandbox_id, target_id);
CREATE UNIQUE INDEX object_references_of_object ON object_references (object_id, target_id);

-- +goose Down

DROP TABLE object_references;
DROP TABLE object_labels;
DROP TABLE objects;
DROP TABLE workspace_labels;
DROP INDEX workspaces_in_order;
ALTER TABLE workspaces DROP COLUMN terminating_at;
