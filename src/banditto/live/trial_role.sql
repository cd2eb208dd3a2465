-- Two roles for a PostgreSQL store of banditto, beside the one that owns its tables:
--
--   banditto_trial    runs experiments (init, ask, tell, missing, stop) and cannot rewrite them: it adds events, and can
--                     neither change nor delete one, nor drop a trigger or a table.
--   banditto_auditor  reads: verify, export, replicate, status.
--
-- Run it as the owner of the tables, or as an administrator, once banditto has made them, and again after a new version
-- of banditto has brought them up to date:
--
--   python -m banditto.live.roles --schema public | psql 'postgresql://OWNER@HOST/DATABASE'
--
-- Then let people and programs in: CREATE ROLE alice LOGIN PASSWORD '...' IN ROLE banditto_trial;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'banditto_trial') THEN
        CREATE ROLE banditto_trial NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'banditto_auditor') THEN
        CREATE ROLE banditto_auditor NOLOGIN;
    END IF;
END
$$;

-- Nobody gets a right here by being somebody.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON banditto_schema, banditto_experiment, banditto_event, banditto_ticket, banditto_request, banditto_metric,
    banditto_queue, banditto_unit_key, banditto_token FROM PUBLIC, banditto_trial, banditto_auditor;

GRANT USAGE ON SCHEMA public TO banditto_trial, banditto_auditor;
GRANT SELECT ON banditto_schema, banditto_experiment, banditto_event, banditto_ticket, banditto_request, banditto_metric,
    banditto_queue TO banditto_trial, banditto_auditor;

-- Whoever has this key can look for a person in the log. Auditors do not need it.
GRANT SELECT, INSERT ON banditto_unit_key TO banditto_trial;

-- The service looks tokens up by their ids; the owner of the tables makes them (`banditto token create`).
GRANT SELECT ON banditto_token TO banditto_trial;

-- What is added: experiments, their events, and what stands beside these.
GRANT INSERT ON banditto_experiment, banditto_event, banditto_ticket, banditto_request, banditto_metric
    TO banditto_trial;
GRANT USAGE ON SEQUENCE banditto_experiment_id_seq TO banditto_trial;

-- What waits to be handed out again, and is not there any more once it was.
GRANT INSERT, DELETE ON banditto_queue TO banditto_trial;

-- What changes: where an experiment stands, and what became of a ticket; `verify` compares both with the events.
GRANT UPDATE (software, events, head, progress) ON banditto_experiment TO banditto_trial;
GRANT UPDATE (status, reward) ON banditto_ticket TO banditto_trial;
