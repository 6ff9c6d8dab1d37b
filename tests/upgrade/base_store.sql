BEGIN TRANSACTION;
CREATE TABLE audit (
    version INTEGER NOT NULL REFERENCES transactions, kind TEXT NOT NULL, name TEXT NOT NULL,
    before TEXT, after TEXT
);
CREATE TABLE documents (
    kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO "documents" VALUES('access','all',2,'{"ended_keys": [], "keys_made": true, "keys_required": true}');
INSERT INTO "documents" VALUES('adapter','pirate@1',2,'{"digest": "7c0432fc1a558f19fd6d276479e97a8953e172bbbf5ef43a075c3a50f9bd860d", "family": "penstock-mini", "files": [{"name": "adapter_config.json", "sha256": "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc", "size": 10}, {"name": "adapter_model.safetensors", "sha256": "6245b35e3f5c8df3384ca0d8b47c359f869ac7c15f60091e7bb03d57243b77ec", "size": 1000}], "labels": {}, "modules": ["q_proj"], "rank": 8, "ref": "pirate@1", "registered_at": "2026-01-02T00:00:00+00:00", "registered_by": "alice", "source": "upload", "state": "live"}');
INSERT INTO "documents" VALUES('alias','sim:pirate',2,'{"deployment": "sim", "moves": [{"at": "2026-01-02T12:00:00+00:00", "by": "admin", "shares": [["pirate@1", 1]], "undoes": false}], "name": "pirate", "pinned": false, "preload": null}');
INSERT INTO "documents" VALUES('api_key','key_1',2,'{"created_at": "2026-01-02T12:00:00+00:00", "digest": "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd", "expires_at": null, "id": "key_1", "name": "laptop", "tenant": "acme", "tokens_per_day": 0, "usd_per_day": 0.0}');
INSERT INTO "documents" VALUES('cluster','identity',1,'{"cluster_id": "7b88a8babd8c2307ea32ae6b4f850080", "epoch": 1}');
INSERT INTO "documents" VALUES('deployment','sim',2,'{"bindings": [], "budget_tokens_per_day": 0, "budget_usd_per_day": 0.0, "canary": [], "context": "reject", "created_at": "2026-01-02T12:00:00+00:00", "degrade": {}, "engine": "simulated", "engine_args": {}, "first_event_deadline_ms": 0, "generation": 2, "kv_pressure": 0.93, "labels": {}, "load_ms": 0, "max_adapter_rank": 0, "max_adapters": 0, "max_completion_tokens": 0, "max_n": 16, "max_ongoing": 0, "max_prompt_tokens": 0, "max_queued": 77, "model": "penstock-mini", "model_generation": 0, "name": "sim", "paused": false, "progress_deadline_ms": 60000, "queue_deadline_ms": 30000, "replicas": 2, "restart_generation": 0, "revision_limit": 10, "revisions": [{"at": "2026-01-02T12:00:00+00:00", "by": "", "cause": "", "engine": "simulated", "engine_args": {}, "generation": 1, "max_adapter_rank": 0, "max_adapters": 0, "model": "penstock-mini", "number": 1, "reason": "", "state": "rolling out", "template_digest": "3b02ac4afea984cf7ce7459118c290c75713796f96c6165c142b89f39845dc66", "undoes": 0}], "selection_policy": "power_of_two", "start_limit_ms": 0, "template_digest": "3b02ac4afea984cf7ce7459118c290c75713796f96c6165c142b89f39845dc66", "template_generation": 1, "tries": 0, "trouble": "", "uid": "u1", "update.max_surge": 1, "update.max_unavailable": 0, "update.min_ready_ms": 5000, "update.on_failure": "rollback", "update.ready_deadline_ms": 0, "updated_at": "2026-01-02T12:00:00+00:00", "usd_per_million_cached": null, "usd_per_million_input": 0.0, "usd_per_million_output": 0.0, "wait_budget_ms": 0}');
INSERT INTO "documents" VALUES('node','n1',2,'{"agent_address": "n1:7000", "allows_model_code": false, "draining": false, "host": "n1", "id": "n1", "instance": "", "pid": 0, "zone": ""}');
INSERT INTO "documents" VALUES('replica','a',2,'{"adapter_digests": [], "adapter_slots": 0, "adapters": [], "address": "a:9000", "assigned_at": "2026-01-02T12:00:00+00:00", "capacity": 0, "crashes": 0, "deployment": "mini", "deployment_uid": "u1", "devices": [], "endpoints": [], "exit_code": 0, "failed_adapters": [], "generation": 1, "id": "a", "instance": "", "last_error": "", "log_path": "", "max_adapter_rank": 0, "max_model_len": 0, "node": "n1", "own_token": false, "pid": 1, "ready_at_ms": 0, "restarts": 0, "said_digest": "3b02ac4afea984cf7ce7459118c290c75713796f96c6165c142b89f39845dc66", "said_generation": 1, "said_uid": "u1", "since": "2026-01-02T12:00:00+00:00", "started_at_ms": 0, "state": "ready", "stop_accepted": false, "template_digest": "3b02ac4afea984cf7ce7459118c290c75713796f96c6165c142b89f39845dc66", "tries": 0}');
INSERT INTO "documents" VALUES('tenant','acme',2,'{"adapters": [], "cache_salt": null, "created_at": "2026-01-02T12:00:00+00:00", "degrade": "allow", "fallbacks": "listed", "generation": 1, "id": "acme", "max_streams": 0, "models": ["sim"], "priority": "normal", "requests_per_minute": 100, "shadow": "allow", "tokens_per_day": 0, "tokens_per_minute": 0, "uid": "11111111111111111111111111111111", "updated_at": "2026-01-02T12:00:00+00:00", "usd_per_day": 2.5}');
CREATE TABLE transactions (
    version INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, who TEXT NOT NULL,
    what TEXT NOT NULL
);
INSERT INTO "transactions" VALUES(1,'2026-01-02T12:00:00+00:00','head','make the cluster''s id');
INSERT INTO "transactions" VALUES(2,'2026-01-02T12:00:00+00:00','admin','all of it');
CREATE TABLE usage (
    day TEXT NOT NULL, tenant TEXT NOT NULL, key_id TEXT NOT NULL, deployment TEXT NOT NULL,
    adapter TEXT NOT NULL, requests INTEGER NOT NULL, rejected INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, cost_nanousd INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, tenant, key_id, deployment, adapter)
) WITHOUT ROWID;
INSERT INTO "usage" VALUES('2026-01-02','acme','key_1','sim','',3,0,12,30,0,0);
CREATE TABLE usage_seen (
    instance TEXT NOT NULL, tenant TEXT NOT NULL, key_id TEXT NOT NULL, deployment TEXT NOT NULL,
    adapter TEXT NOT NULL, requests INTEGER NOT NULL, rejected INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, heard TEXT NOT NULL, cost_nanousd INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (instance, tenant, key_id, deployment, adapter)
) WITHOUT ROWID;
INSERT INTO "usage_seen" VALUES('i','acme','key_1','sim','',3,0,12,30,0,'2026-01-02',0);
CREATE INDEX audit_version ON audit (version);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('transactions',2);
PRAGMA user_version = 4;
COMMIT;
