-- +goose Up

-- Calls that carry a request_id and were let through, so that none is made twice.
CREATE TABLE admissions (
    scope        TEXT    NOT NULL, -- stands for caller, method and workspace
    request_id   TEXT    NOT NULL,
    caller       TEXT    NOT NULL,
    fingerprint  TEXT    NOT NULL, -- stands for the rest of the request
    operation_id TEXT    NOT NULL, -- of the work that the call began
    outcome      TEXT    NOT NULL DEFAULT '', -- empty until it is known
    subject_id   TEXT    NOT NULL DEFAULT '',
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (scope, request_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX admissions_by_operation ON admissions (operation_id);
CREATE INDEX admissions_of_caller ON admissions (caller, expires_at);
CREATE INDEX admissions_in_order ON admissions (expires_at);

-- What was deleted, or was not, and by whom.
CREATE TABLE audit (
    id                TEXT    NOT NULL PRIMARY KEY,
    at                INTEGER NOT NULL,
    identity_provider TEXT    NOT NULL,
    issuer            TEXT    NOT NULL,
    subject           TEXT    NOT NULL,
    method            TEXT    NOT NULL,
    workspace         TEXT    NOT NULL,
    name              TEXT    NOT NULL,
    sandbox_id        TEXT    NOT NULL,
    expected_id       TEXT,    -- NULL without a precondition
    expected_version  INTEGER,
    outcome           TEXT    NOT NULL,
    settled_at        INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_in_order ON audit (at, id);
CREATE INDEX audit_of_name ON audit (workspace, name, at, id);

-- +goose Down

DROP TABLE audit;
DROP TABLE admissions;
