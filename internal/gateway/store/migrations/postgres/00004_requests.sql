-- +goose Up

-- Calls that carry a request_id and were let through, so that none is made twice.
CREATE TABLE admissions (
    scope        TEXT COLLATE "C" NOT NULL, -- stands for caller, method and workspace
    request_id   TEXT COLLATE "C" NOT NULL,
    caller       TEXT COLLATE "C" NOT NULL,
    fingerprint  TEXT COLLATE "C" NOT NULL, -- stands for the rest of the request
    operation_id TEXT COLLATE "C" NOT NULL, -- of the work that the call began
    outcome      TEXT COLLATE "C" NOT NULL DEFAULT '', -- empty until it is known
    subject_id   TEXT COLLATE "C" NOT NULL DEFAULT '',
    expires_at   BIGINT           NOT NULL,
    PRIMARY KEY (scope, request_id)
);

CREATE UNIQUE INDEX admissions_by_operation ON admissions (operation_id);
CREATE INDEX admissions_of_caller ON admissions (caller, expires_at);
CREATE INDEX admissions_in_order ON admissions (expires_at);

-- What was deleted, or was not, and by whom.
CREATE TABLE audit (
    id                TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at                BIGINT           NOT NULL,
    identity_provider TEXT COLLATE "C" NOT NULL,
    issuer            TEXT COLLATE "C" NOT NULL,
    subject           TEXT COLLATE "C" NOT NULL,
    method            TEXT COLLATE "C" NOT NULL,
    workspace         TEXT COLLATE "C" NOT NULL,
    name              TEXT COLLATE "C" NOT NULL,
    sandbox_id        TEXT COLLATE "C" NOT NULL,
    expected_id       TEXT COLLATE "C", -- NULL without a precondition
    expected_version  BIGINT,
    outcome           TEXT COLLATE "C" NOT NULL,
    settled_at        BIGINT
);

CREATE INDEX audit_in_order ON audit (at, id);
CREATE INDEX audit_of_name ON audit (workspace, name, at, id);

-- +goose Down

DROP TABLE audit;
DROP TABLE admissions;
